package indexers_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestIndexesOf verifies that a type has the distinct indexes and references of all matching resources;
// indexes of the same name are prefixed with the name of their resource.
func TestIndexesOf(t *testing.T) {
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
		var got []string
		for _, index := range config.IndexesOf(gvr, "W") {
			got = append(got, index.Name)
		}
		for _, reference := range config.ReferencesOf(gvr, "W") {
			got = append(got, reference.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("indexes and references of version %s = %q, want %q", version, got, want)
		}
	}
}
