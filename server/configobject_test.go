package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
)

// parseYAML returns a config object.
func parseYAML(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": indexers.APIVersion}}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestFieldsOfErrors verifies that errors of objects name the fields, and that valid objects have none.
func TestFieldsOfErrors(t *testing.T) {
	const indexes = "kind: IndexConfig\nmetadata: {name: a, namespace: n}\nspec:\n  resources:\n" +
		"  - {name: b, match: {group: c.example, resource: ds}, indexes: [{name: e, path: .f}]}\n"
	const types = "kind: CachedTypes\nmetadata: {name: a}\nspec:\n  types:\n  - match: {group: c.example, resource: ds}\n"
	for text, want := range map[string]string{
		indexes: "", types: "",
		types + "  - {match: {group: '', resource: pods}, namespaces: {include: [a]}, keep: {paths: [.spec]}}": "",
		"kind: IndexConfig\nmetadata: {name: a}":                                                                        "spec",
		indexes + "  - {name: b, match: {group: c.example, resource: es}}":                                              "spec.resources[1].name",
		indexes + "  - {name: g, match: {group: c.example}}":                                                            "spec.resources[1].match",
		indexes + "  - {name: g, match: {group: c.example, resource: a}, indexes: [{name: e, path: '.f['}]}":            "spec.resources[1].indexes[0].path",
		indexes + "  - {name: g, match: {group: c.example, resource: a}, indexes: [{name: type, path: .type}]}":         "spec.resources[1].indexes[0].name",
		indexes + "  - {name: g, match: {group: c.example, resource: a}, indexes: [{name: e, path: .f, order: sortd}]}": "spec.resources[1].indexes[0].order",
		indexes + "  - {name: g, match: {group: c.example, resource: '*'}}":                                             "spec.resources[1].match",
		types + "  - {match: {group: c.example, resource: a, colour: red}}":                                             "spec.types[1].match.colour",
		types + "  - {match: {group: c.example, resource: a}, storage: {mode: Object}}":                                 "spec.types[1].storage.mode",
		types + "  - {match: {group: c.example, resource: a}, storage: {mode: fast}}":                                   "spec.types[1].storage.mode",
		types + "  - {match: {group: c.example, resource: a}, namespaces: {include: [a, b]}}":                           "spec.types[1].namespaces",
		types + "  - {match: {group: c.example, resource: a}, namespaces: {include: ['a*']}}":                           "spec.types[1].namespaces",
		types + "  - {match: {group: c.example, resource: a}, selectors: {labels: a=b}}":                                "spec.types[1].selectors",
		types + "  - {match: {group: c.example, resource: a}, keep: {paths: [.spec]}, prune: {remove: [.status]}}":      "spec.types[1].keep.paths",
		types + "  - {match: {group: c.example, resource: a}, keep: {paths: [.spec, $]}}":                               "spec.types[1].keep.paths[1]",
		"kind: CachedTypes\nmetadata: {name: a}\nspec: {types: all}":                                                    "spec.types",
	} {
		o := parseObject(parseYAML(t, text))
		got := ""
		if len(o.errors) > 0 {
			got = o.errors[0].Field
		}
		if got != want || len(o.errors) > 1 || (len(o.resources) > 0) != (want == "") {
			t.Errorf("%s\nerrors %+v with %d elements, want one at %q", text, o.errors, len(o.resources), want)
		}
	}
}

// TestDocumentedObjects verifies that the examples in docs/crdcached.md are valid.
func TestDocumentedObjects(t *testing.T) {
	page, err := os.ReadFile("../docs/crdcached.md")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, block := range strings.Split(string(page), "```yaml\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		o := parseYAML(t, text)
		if o.GetKind() == ConfigKind {
			continue
		}
		kinds[o.GetKind()] = true
		if parsed := parseObject(o); len(parsed.errors) > 0 {
			t.Errorf("%s\nerrors: %+v", text, parsed.errors)
		}
	}
	if len(kinds) != 2 {
		t.Errorf("the page has examples of %v, want both kinds", kinds)
	}
}

// TestFilePrecedence verifies that an index of a file replaces one of an object with its name, so that a
// changed file takes effect before the objects are merged again.
func TestFilePrecedence(t *testing.T) {
	const text = "kind: IndexConfig\nmetadata: {name: a, namespace: n}\nspec: {resources: [{name: b, match: {group: c.example, resource: ds}, indexes: [%s]}]}"
	file := writeConfigFile(t, "apiVersion: "+indexers.APIVersion+"\n"+
		strings.Replace(fmt.Sprintf(text, "{name: e, path: .f}"), ", namespace: n", "", 1))
	c := new(typeCache)
	if err := c.loadSelection(&Config{IndexConfigs: []string{file}}); err != nil {
		t.Fatal(err)
	}
	s := c.selection.Load()
	gvr := schema.GroupVersionResource{Group: "c.example", Version: "v1", Resource: "ds"}
	o := parseObject(parseYAML(t, fmt.Sprintf(text, "{name: e, path: .other}, {name: g, path: .g}")))
	s.objects = &objectConfig{indexes: map[schema.GroupVersionResource][]*indexers.Index{
		gvr: o.resources[0].Indexes}}
	_, indexes := s.informerOptions(discovery.Resource{GVR: gvr})
	if len(indexes) != 2 || !indexes[0].Same(s.indexes.Resources[0].Indexes[0]) || indexes[1].Name != "g" {
		t.Errorf("the indexes are %v, want the one of the file and g", indexes)
	}
}

// TestStatusWrites verifies that withStatus returns an object only if its status differs, and reports whether
// only the figures (the numbers of objects and bytes) differ.
func TestStatusWrites(t *testing.T) {
	config := DefaultConfig()
	c, err := newTypeCache(t.Context(), &rest.Config{Host: "https://cluster.example"}, &config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.live.Close()
	merged := &mergedObject{configObject: parseObject(parseYAML(t, cachedTypesYAML("a", "b",
		"keep: {paths: []}")))}
	expect := func(reason string, wantChanged, wantFigures bool) {
		t.Helper()
		changed, figures, err := merged.withStatus(c, nil)
		if err != nil || (changed != nil) != wantChanged || figures != wantFigures {
			t.Fatalf("%s: changed %v, figures %v, error %v; want changed: %v, figures: %v", reason, changed,
				figures, err, wantChanged, wantFigures)
		}
		if changed != nil {
			merged.Unstructured = changed
		}
	}
	expect("without a status", true, false)
	expect("with the status", false, false)
	if err := unstructured.SetNestedField(merged.Object, int64(5), "status", "objects"); err != nil {
		t.Fatal(err)
	}
	expect("with another number of objects", true, true)
	merged.addError("spec", reasonConflict, "a conflict")
	expect("with an error", true, false)
	expect("with the error in the status", false, false)
}

// objectsFixture is a crdcached that applies config objects of its cluster.
type objectsFixture struct {
	*daemon
	cluster *apiServer
}

func (o objectsFixture) resource(u *unstructured.Unstructured) dynamic.ResourceInterface {
	gvr := indexConfigGVR
	if u.GetKind() == cachedTypesKind {
		gvr = cachedTypesGVR
	}
	return o.cluster.cluster.Client().Resource(gvr).Namespace(u.GetNamespace())
}

func (o objectsFixture) create(text string) *unstructured.Unstructured {
	o.Helper()
	u := parseYAML(o.T, text)
	created, err := o.resource(u).Create(o.Context(), u, metav1.CreateOptions{})
	if err != nil {
		o.Fatal(err)
	}
	return created
}

func (o objectsFixture) delete(u *unstructured.Unstructured) {
	o.Helper()
	if err := o.resource(u).Delete(o.Context(), u.GetName(), metav1.DeleteOptions{}); err != nil {
		o.Fatal(err)
	}
}

// awaitStatus waits for a status, given as the state and the errors' fields with their reasons.
func (o objectsFixture) awaitStatus(u *unstructured.Unstructured, want ...string) objectStatus {
	o.Helper()
	ctx, cancel := context.WithTimeout(o.Context(), 2*time.Minute)
	defer cancel()
	watch, err := o.resource(u).Watch(ctx, metav1.SingleObject(metav1.ObjectMeta{Name: u.GetName()}))
	if err != nil {
		o.Fatal(err)
	}
	defer watch.Stop()
	var status objectStatus
	for event := range watch.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			break
		}
		content, _, _ := unstructured.NestedMap(object.Object, "status")
		status = objectStatus{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status); err != nil {
			o.Fatal(err)
		}
		got := []string{status.State}
		for _, e := range status.Errors {
			got = append(got, e.Field+" "+e.Reason)
		}
		if status.ObservedGeneration == object.GetGeneration() && cmp.Equal(got, want) {
			return status
		}
	}
	o.Fatalf("the status of %s is %+v, want %q", u.GetName(), status, want)
	return status
}

// installDefinitions installs the CRDs.
func (o objectsFixture) installDefinitions() {
	o.Helper()
	const folder = "../packaging/crdcached/chart/definitions/"
	if err := o.cluster.cluster.LoadFiles(o.Context(), folder+"cachedtypes-crd.yaml",
		folder+"indexconfigs-crd.yaml"); err != nil {
		o.Fatal(err)
	}
}

// names returns the names of the objects that crdcached lists at a path, or the code of the answer.
func (o objectsFixture) names(path string) string {
	o.Helper()
	answer := o.request("ann", http.MethodGet, path, "")
	if answer.code != http.StatusOK {
		return http.StatusText(answer.code)
	}
	var list unstructured.UnstructuredList
	if err := json.Unmarshal(answer.body, &list); err != nil {
		o.Fatal(err)
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.GetName())
	}
	return strings.Join(names, " ")
}

// awaitNames waits until names returns want.
func (o objectsFixture) awaitNames(path, want string) {
	o.Helper()
	for o.names(path) != want {
		if o.Context().Err() != nil {
			o.Fatalf("crdcached does not list %q at %s in time", want, path)
		}
	}
}

// cachedTypesYAML returns a CachedTypes for types of the demo group.
func cachedTypesYAML(name, resource, settings string) string {
	return fmt.Sprintf("kind: CachedTypes\nmetadata: {name: %s}\nspec: {types: [{match: {group: demo.crdcache.dev, resource: '%s'}, %s}]}",
		name, resource, settings)
}

// indexConfigYAML returns an IndexConfig with one index of a type of the demo group.
func indexConfigYAML(namespace, name, resource, index, path string) string {
	return fmt.Sprintf("kind: IndexConfig\nmetadata: {name: %s, namespace: %s}\nspec: {resources: [{name: a, match: {group: demo.crdcache.dev, resource: %s}, indexes: [{name: %s, path: %s}]}]}",
		name, namespace, resource, index, path)
}

// TestConfigObjects verifies that types and indexes of custom resources are in effect while the objects
// exist, that the status of each shows its errors, and that one object does not affect the others.
func TestConfigObjects(t *testing.T) {
	a, config := newAPIServer(t), newConfig("environments.demo.crdcache.dev")
	config.CustomResources.Enabled = true
	o := objectsFixture{startDaemon(t, a, config), a}
	o.awaitReady() // without the definitions
	o.installDefinitions()
	const workloads = "/apis/demo.crdcache.dev/v1/namespaces/payments/workloads"
	types := o.create(cachedTypesYAML("demo", "workloads", "keep: {paths: [.spec.environment, .spec.tier]}}, "+
		"{match: {group: demo.crdcache.dev, resource: 'w*'}"))
	status := o.awaitStatus(types, stateActive)
	if status.Objects == 0 || status.Bytes == 0 || len(status.Conditions) != 2 {
		t.Errorf("the status is %+v, want objects, bytes and two conditions", status)
	}
	first := o.create(indexConfigYAML("payments", "first", "workloads", "tier", ".spec.tier"))
	if status = o.awaitStatus(first, stateActive); status.Objects == 0 || status.Bytes == 0 {
		t.Errorf("the status is %+v, want objects and bytes", status)
	}
	edge := o.create(indexConfigYAML("edge", "edge", "workloads", "environment", ".spec.environment"))
	if status = o.awaitStatus(edge, stateActive); status.Objects != 3 || status.Bytes != 0 {
		t.Errorf("the status is %+v, want the 3 objects of the namespace and no bytes", status)
	}
	byTier := o.names(workloads + "?fieldSelector=tier%3Dcritical")
	if !strings.Contains(byTier, "ledger") {
		t.Errorf("crdcached lists %q by the index, want ledger", byTier)
	}
	var second, third *unstructured.Unstructured
	for _, c := range []struct {
		object **unstructured.Unstructured
		text   string
		want   string
	}{
		{nil, cachedTypesYAML("bad", "routes", "storage: {mode: Object}"), "spec.types[0].storage.mode Invalid"},
		{nil, cachedTypesYAML("file", "environments", "storage: {mode: Packed}"), "spec.types[0] Conflict"},
		{nil, cachedTypesYAML("scope", "environments", "namespaces: {include: [payments]}"),
			"spec.types[0].namespaces Invalid"},
		{&third, cachedTypesYAML("younger", "workloads", "storage: {mode: Packed}"), "spec.types[0] Conflict"},
		{&second, indexConfigYAML("payments", "second", "workloads", "tier", ".spec.environment"),
			"spec.resources[0].indexes[0].name Conflict"},
		{nil, indexConfigYAML("payments", "dropped", "workloads", "image", ".spec.image"),
			"spec.resources[0].indexes[0] Invalid"},
		{nil, indexConfigYAML("storefront", "forbidden", "workloads", "env", ".spec.environment"),
			"spec.resources[0] Forbidden"},
		{nil, indexConfigYAML("payments", "absent", "releases", "env", ".spec.environment"),
			"spec.resources[0].match NotCached"},
	} {
		created := o.create(c.text)
		o.awaitStatus(created, stateRejected, c.want)
		if c.object != nil {
			*c.object = created
		}
	}
	if got := o.names(workloads + "?fieldSelector=tier%3Dcritical"); got != byTier {
		t.Errorf("crdcached lists %q beside rejected objects, want %q", got, byTier)
	}
	o.delete(first)
	o.awaitStatus(second, stateActive)
	if got := o.names(workloads + "?fieldSelector=tier%3Dproduction-eu"); !strings.Contains(got, "ledger") {
		t.Errorf("crdcached lists %q by the index of the other object, want ledger", got)
	}
	o.delete(types)
	o.awaitStatus(third, stateActive)
	o.delete(third)
	o.awaitStatus(second, stateRejected, "spec.resources[0].match NotCached")
	o.awaitNames(workloads, http.StatusText(http.StatusMisdirectedRequest))

	o.awaitStatus(o.create(cachedTypesYAML("again", "workloads", "storage: {mode: Packed}")), stateActive)
	if err := a.cluster.Client().Resource(crd.GVR).Delete(t.Context(), "cachedtypes.crdcache.dev",
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	o.awaitNames(workloads, http.StatusText(http.StatusMisdirectedRequest))
}
