package crdcached_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/integration/harness"
)

// readDefinitions returns the CustomResourceDefinitions of crdcached, and checks that their schemas are
// structural.
func readDefinitions(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	all := append(harness.ReadManifests(t, manifestsDir+"chart/definitions/cachedtypes-crd.yaml"),
		harness.ReadManifests(t, manifestsDir+"chart/definitions/indexconfigs-crd.yaml")...)
	for _, u := range all {
		var definition apiextensionsv1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, &definition,
			true); err != nil {
			t.Fatal(err)
		}
		var internal apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
			definition.Spec.Versions[0].Schema.OpenAPIV3Schema, &internal, nil); err != nil {
			t.Fatal(err)
		}
		structural, err := structuralschema.NewStructural(&internal)
		if err != nil {
			t.Fatal(err)
		}
		if problems := structuralschema.ValidateStructural(nil, structural); len(problems) > 0 {
			t.Errorf("the schema of %s is not structural: %v", u.GetName(), problems.ToAggregate())
		}
	}
	return all
}

func parseManifest(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// writeConfigFile writes a config object to a file and returns its path.
func writeConfigFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "object.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: crdcache.dev/v1beta1\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// awaitField waits until kubectl prints want for a field of an object, such as cachedtypes/demo.
func awaitField(t *testing.T, field, want string, object ...string) {
	t.Helper()
	harness.Kubectl(t, append([]string{"wait", "--timeout=120s", "--for=jsonpath={" + field + "}=" + want}, object...)...)
}

// TestCustomResources applies CachedTypes and IndexConfigs to a real API server: good, invalid, conflicting
// and forbidden ones. Two replicas follow them, and one writes the status.
func TestCustomResources(t *testing.T) {
	harness.InstallCRDs(t, harness.ReadManifests(t, testdata+"crds")...)
	harness.Apply(t, harness.ReadManifests(t, testdata+"objects")...)
	kubeconfig := harness.CrdcachedKubeconfig(t,
		rbacv1.PolicyRule{APIGroups: []string{"crdcache.dev"}, Verbs: []string{"update"},
			Resources: []string{"cachedtypes/status", "indexconfigs/status"}},
		rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Verbs: []string{"create", "update"},
			Resources: []string{"leases"}})
	const config = "customResources: {enabled: true}\n"
	first := harness.StartCrdcachedIn(t, kubeconfig, config) // before the definitions are installed
	second := harness.StartCrdcachedIn(t, kubeconfig, config)
	harness.InstallCRDs(t, readDefinitions(t)...)
	testSchema(t)

	apply := func(text string) {
		harness.Kubectl(t, "apply", "--validate=strict", "-f", writeConfigFile(t, text))
	}
	apply("kind: CachedTypes\nmetadata: {name: demo}\nspec: {types: [{match: {group: " + group + ", resource: '*'}, storage: {mode: Packed}}]}")
	awaitField(t, ".status.state", "Active", "cachedtypes/demo")
	apply("kind: CachedTypes\nmetadata: {name: other}\nspec: {types: [{match: {group: " + group + ", resource: routes}, keep: {paths: [.spec]}}]}")
	awaitField(t, ".status.errors[0].reason", "Conflict", "cachedtypes/other")

	reader := harness.NewUser(t, "reader")
	reader.Grant(t, "payments", newPolicyRule("get,list,watch", "workloads"))
	harness.Apply(t, parseManifest(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: indexing, namespace: payments},
		rules: [{apiGroups: [`+group+`], resources: [workloads], verbs: [list]}]}`),
		parseManifest(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: indexing, namespace: payments},
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: indexing},
		subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:serviceaccounts:payments"}]}`))
	applyIndex := func(namespace, name, path string) {
		apply(fmt.Sprintf("kind: IndexConfig\nmetadata: {name: %s, namespace: %s}\nspec: {resources: [{name: workloads, match: {group: %s, version: v1, resource: workloads}, indexes: [{name: tier, path: %s}]}]}",
			name, namespace, group, path))
	}
	applyIndex("payments", "good", ".spec.tier")
	awaitField(t, ".status.state", "Active", "indexconfig/good", "-n", "payments")
	applyIndex("payments", "invalid", "'.spec.tier['")
	awaitField(t, ".status.errors[0].field", "spec.resources[0].indexes[0].path", "indexconfig/invalid", "-n", "payments")
	applyIndex("storefront", "forbidden", ".spec.environment")
	awaitField(t, ".status.errors[0].reason", "Forbidden", "indexconfig/forbidden", "-n", "storefront")
	if columns := harness.Kubectl(t, "get", "ixc", "-A"); !strings.Contains(columns, "STATE") ||
		!strings.Contains(columns, "system:serviceaccounts:storefront may not list") {
		t.Errorf("kubectl prints\n%s\nwant the state and the error", columns)
	}

	listCritical := func(s *harness.CrdcachedServer) (names []string, err error) {
		client, err := dynamic.NewForConfig(s.As(reader.Config(t)))
		if err != nil {
			return nil, err
		}
		list, err := client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "workloads"}).
			Namespace("payments").List(t.Context(), metav1.ListOptions{FieldSelector: "tier=critical"})
		if err != nil {
			return nil, err
		}
		for _, item := range list.Items {
			names = append(names, item.GetName())
		}
		return names, nil
	}
	expectLedger := func(s *harness.CrdcachedServer) {
		t.Helper()
		if names, err := listCritical(s); err != nil || !strings.Contains(fmt.Sprint(names), "ledger") {
			t.Errorf("the answer by the index is %v (%v), want ledger", names, err)
		}
	}
	for _, s := range []*harness.CrdcachedServer{first, second} { // one of them has not written the status
		harness.Eventually(t, func(context.Context) error { _, err := listCritical(s); return err })
		expectLedger(s)
	}
	if err := first.Stop(); err != nil {
		t.Error(err)
	}
	harness.Kubectl(t, "delete", "cachedtypes/demo")
	awaitField(t, ".status.state", "Active", "cachedtypes/other") // written by the other replica
	awaitField(t, ".status.errors[0].reason", "NotCached", "indexconfig/good", "-n", "payments")
	apply("kind: CachedTypes\nmetadata: {name: demo}\nspec: {types: [{match: {group: " + group + ", resource: workloads}}]}")
	awaitField(t, ".status.state", "Active", "indexconfig/good", "-n", "payments")
	if err := second.Stop(); err != nil {
		t.Error(err)
	}
	expectLedger(harness.StartCrdcachedIn(t, kubeconfig, config)) // ready with the objects in effect
}

// validateObject returns the error of the API server for a custom resource with these fields.
func validateObject(t *testing.T, client dynamic.Interface, kind string, spec any) error {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "crdcache.dev/v1beta1", "kind": kind,
		"metadata": map[string]any{"name": "schema"}, "spec": spec}}
	gvr := schema.GroupVersionResource{Group: "crdcache.dev", Version: "v1beta1", Resource: "cachedtypes"}
	resource := client.Resource(gvr).Namespace("")
	if kind == "IndexConfig" {
		gvr.Resource = "indexconfigs"
		resource = client.Resource(gvr).Namespace("default")
	}
	_, err := resource.Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll},
		FieldValidation: metav1.FieldValidationStrict})
	if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		t.Error(err)
	}
	return err
}

// testExamples checks that the API server accepts the indexes, keep-lists and pruned fields of all documented
// configs as custom resources.
func testExamples(t *testing.T, client dynamic.Interface) {
	t.Helper()
	checked := map[string]int{}
	accept := func(kind string, spec any) {
		if err := validateObject(t, client, kind, spec); err != nil {
			t.Errorf("the API server refuses a documented config: %v\n%v", err, spec)
		}
		checked[kind]++
	}
	match := map[string]any{"group": "example.com", "resource": "widgets"}
	acceptResource := func(resource map[string]any) {
		if indexes := resource["indexes"]; indexes != nil {
			accept("IndexConfig", map[string]any{"resources": []any{
				map[string]any{"name": "r", "match": cmp.Or[any](resource["match"], match), "indexes": indexes}}})
		}
		for _, field := range []string{"keep", "prune"} {
			if value := resource[field]; value != nil {
				accept("CachedTypes", map[string]any{"types": []any{map[string]any{"match": match, field: value}}})
			}
		}
	}
	for _, block := range exampleBlocks(t) {
		var list []map[string]any
		var document struct {
			Spec struct{ Resources, Types []map[string]any }
		}
		if yaml.Unmarshal([]byte(block), &list) != nil && yaml.Unmarshal([]byte(block), &document) != nil {
			continue // not about configs
		}
		for _, resource := range append(document.Spec.Resources, document.Spec.Types...) {
			acceptResource(resource)
		}
		for _, element := range list {
			switch {
			case element["match"] != nil:
				acceptResource(element)
			case element["name"] != nil && element["to"] == nil && element["help"] == nil:
				acceptResource(map[string]any{"indexes": []any{element}})
			}
		}
	}
	if checked["IndexConfig"] < 40 || checked["CachedTypes"] < 4 {
		t.Errorf("checked %v, want at least 40 IndexConfigs and 4 CachedTypes", checked)
	}
}

// exampleBlocks returns the config files of the repository and the YAML in its documentation.
func exampleBlocks(t *testing.T) (blocks []string) {
	t.Helper()
	fence := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	for _, pattern := range []string{"docs/*.md", "testdata/indexes/*.yaml", "examples/*/indexes.yaml"} {
		files, err := filepath.Glob("../../" + pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Ext(file) == ".yaml" {
				blocks = append(blocks, string(data))
			}
			for _, m := range fence.FindAllSubmatch(data, -1) {
				blocks = append(blocks, string(m[1]))
			}
		}
	}
	return blocks
}

// testSchema checks that the API server refuses objects that the schema excludes.
func testSchema(t *testing.T) {
	t.Helper()
	client, err := dynamic.NewForConfig(harness.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	testExamples(t, client)
	for text, want := range map[string]string{
		"spec: {}": "spec.types: Required value",
		"spec: {types: [{match: {group: a.example, resource: b}, storage: {mode: Object}}]}":       "supported values",
		"spec: {types: [{match: {group: a.example, resource: b, kind: C}}]}":                       "only one schema",
		"spec: {types: [{match: {group: a.example, resource: b}, namespaces: {include: [a, b]}}]}": "at most 1",
		"spec: {types: [{match: {group: a.example, resource: b}, selectors: {labels: a=b}}]}":      "unknown field",
		"spec: {types: [{match: {group: a.example, resource: b}, keep: {paths: ['.a', [a, b]]}}]}": "must be of type string",
	} {
		o := parseManifest(t, text)
		err := validateObject(t, client, "CachedTypes", o.Object["spec"])
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error of %s is %v, want %q", text, err, want)
		}
	}
	for index, want := range map[string]string{
		"path: [a, b]":                                "must be of type string",
		"path: .a, when: {cel: self.a}":               "unknown field",
		"path: .a, when: '@.a', whenCEL: self.a":      "must not validate the schema",
		"path: .a, label: b":                          "only one schema",
		"path: .a, each: '.b[*]'":                     "at least one schema",
		"path: .a, regex: {match: a, group: b}":       "must be of type integer",
		"path: .a, missing: skip":                     "supported values",
		"key: [{name: a, path: .a}], missing: Report": "must not validate the schema",
	} {
		o := parseManifest(t, "spec: {resources: [{name: r, match: {group: a.example, resource: b}, indexes: [{name: i, "+index+"}]}]}")
		err := validateObject(t, client, "IndexConfig", o.Object["spec"])
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error of an index with %s is %v, want %q", index, err, want)
		}
	}
}
