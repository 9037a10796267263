package indexers_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestResourceOf verifies that a type has the distinct indexes and references of all matching resources,
// where indexes of the same name are prefixed with the name of their resource, and that their settings must
// be equal.
func TestResourceOf(t *testing.T) {
	config := parse(t, `
  - name: a
    match: {group: g, version: v1, resource: ws}
    indexes: [{name: same, path: .spec.a}, {name: other, path: .spec.b}]
    references: [{name: r, to: {group: g, resource: xs, namePath: .spec.a}}]
  - name: b
    match: {group: g, kind: W}
    indexes: [{name: same, path: .spec.a}, {name: other, path: .spec.c}]
  - name: c
    match: {group: g, version: v2, resource: ws}
    indexes: [{name: second, path: .spec.a}]
    references: [{name: r2, to: {group: g, resource: xs, namePath: .spec.a}}]
`)
	for version, want := range map[string][]string{
		"v1": {"same", "a/other", "b/other", "r"},
		"v2": {"same", "other", "second", "r2"},
	} {
		gvr := schema.GroupVersionResource{Group: "g", Version: version, Resource: "ws"}
		merged, err := config.ResourceOf(gvr, "W")
		var got []string
		for _, index := range merged.Indexes {
			got = append(got, index.Name)
		}
		for _, reference := range merged.References {
			got = append(got, reference.Name)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("indexes and references of version %s = %q, %v; want %q", version, got, err, want)
		}
	}
	for settings, want := range map[string]string{
		"storage: {mode: Packed}":         "",
		"selectors: {labels: a=b}":        "selectors",
		"namespaces: {include: [a]}":      "namespaces",
		"keep: {paths: [.spec]}":          "keep",
		"prune: {remove: [.spec.unused]}": "prune",
	} {
		config := parse(t, "\n  - {name: a, match: {group: g, resource: ws}, "+settings+
			"}\n  - {name: b, match: {group: g, kind: W}}\n")
		gvr := schema.GroupVersionResource{Group: "g", Version: "v1", Resource: "ws"}
		merged, err := config.ResourceOf(gvr, "W")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), "different "+want) {
			t.Errorf("with %s: got the error %v, want one about %q", settings, err, want)
		}
		if want == "" && merged.Storage.Mode != "Packed" {
			t.Errorf("with %s: the storage mode is %q, want the only one that is set", settings, merged.Storage.Mode)
		}
		if named, err := config.ResourceOf(gvr, "W", "a"); err != nil || named.Name != "a" {
			t.Errorf("with %s: ResourceOf the resource a = %v, %v", settings, named.Name, err)
		}
	}
}
