package crdcached_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// TestIndexesHaveTheSchema verifies that indexes over CEL select the objects for which the API server's
// validation rules hold, also after a change of the CRD's schema that changes the results.
func TestIndexesHaveTheSchema(t *testing.T) {
	rules := []string{"self.spec.ratio / 2.0 == 0.5", "type(self.spec.ratio) == double", "self.spec.groups == ['b', 'a']",
		"(self.spec.groups + ['a']).size() == 2", "self.spec.ratios.sum() > 2.0", "string(self.spec.ratio) == '1'"}
	specs := map[string]string{"a": "{ratio: 1, groups: [a, b], ratios: [1, 2]}", "b": "{ratio: 1.5, groups: [b, a], ratios: [1]}",
		"c": "{ratio: 2, groups: [a], ratios: [1.5, 1]}", "d": "{ratio: 0.5, groups: [b], ratios: []}"}
	var definedRules, indexes []string
	for i, rule := range rules {
		definedRules = append(definedRules, fmt.Sprintf("{rule: %q, message: rule-%d}", rule, i))
		indexes = append(indexes, fmt.Sprintf("{name: rule-%d, cel: %q}", i, rule))
	}
	widgets, namespace := schema.GroupVersionResource{Group: harness.Group(t), Version: "v1", Resource: "widgets"},
		harness.Namespace(t)
	parse := func(text string) (object map[string]any) {
		must(t, yaml.Unmarshal([]byte(text), &object))
		return object
	}
	definition := harness.NewCRD(widgets.Group, "Widget")
	version := definition.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	setSchema := func(listType, rules string) {
		version["schema"] = parse(fmt.Sprintf(`{openAPIV3Schema: {type: object, x-kubernetes-validations: [%s],
			properties: {spec: {type: object, properties: {ratio: {type: number},
			groups: {type: array, x-kubernetes-list-type: %s, maxItems: 9, items: {type: string, maxLength: 9}},
			ratios: {type: array, maxItems: 9, items: {type: number}}}}}}}`, rules, listType))
	}
	setSchema("set", "")
	harness.InstallCRDs(t, definition)
	client := adminClient(t)
	objects := client.Resource(widgets).Namespace(namespace)
	create := func(name string, options metav1.CreateOptions) error {
		o := newObject(widgets, name, "1")
		o.Object["spec"] = parse(specs[name[:1]])
		_, err := objects.Create(t.Context(), o, options)
		return err
	}
	for name := range specs {
		must(t, create(name, metav1.CreateOptions{}))
	}
	file := filepath.Join(t.TempDir(), "indexes.yaml")
	text := fmt.Sprintf(`{apiVersion: crdcache.dev/v1beta1, kind: IndexConfig, metadata: {name: a}, spec: {resources: [
  {name: r, match: {group: %s, resource: widgets}, indexes: [%s]}]}}`, widgets.Group, strings.Join(indexes, ", "))
	must(t, os.WriteFile(file, []byte(text), 0o600))
	server := harness.StartCrdcached(t, fmt.Sprintf("indexConfigs: [%q]\n", file))
	// compare compares the indexes with the rules of the CRD until they agree.
	compare := func(listType string) {
		t.Helper()
		setSchema(listType, strings.Join(definedRules, ", "))
		patch, err := (&unstructured.Unstructured{Object: map[string]any{"spec": definition.Object["spec"],
			"apiVersion": "apiextensions.k8s.io/v1", "kind": definition.GetKind()}}).MarshalJSON()
		if err == nil {
			_, err = client.Resource(crd.GVR).Patch(t.Context(), definition.GetName(), types.MergePatchType,
				patch, metav1.PatchOptions{})
		}
		must(t, err)
		harness.Eventually(t, func(context.Context) error {
			for i, rule := range rules {
				q := url.QueryEscape(fmt.Sprintf("rule-%d=true", i))
				answer := send(t, server.As(harness.Config(t)), http.MethodGet,
					"/query/apis/"+widgets.Group+"/v1/widgets?q="+q)
				holds := map[string]bool{}
				for name := range specs {
					err := create(name+"-new", metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
					holds[name] = err == nil || !strings.Contains(err.Error(), fmt.Sprint("rule-", i))
					if got := strings.Contains(answer.Body, fmt.Sprintf(`"name":%q`, name)); got != holds[name] {
						return fmt.Errorf("%s, a %s: the rule holds for %v; the index answers %d %s", rule, listType, holds,
							answer.Code, answer.Body)
					}
				}
			}
			if listType == "atomic" && create("b-new", metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}) == nil {
				return fmt.Errorf("the rules are not in effect")
			}
			return nil
		})
	}
	compare("set")
	compare("atomic")
}
