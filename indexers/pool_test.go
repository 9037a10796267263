package indexers

import (
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// TestKeysOfJSONDoNotDependOnPool verifies that JSON and the decoded object have equal keys for any content
// of the pooled buffers.
func TestKeysOfJSONDoNotDependOnPool(t *testing.T) {
	const document = `{"metadata":{"name":"x","namespace":"ns","labels":{"l":"v"}},"spec":{"a":[{"b":"1"},{"b":"2"}],"c":"d"}}`
	var object map[string]any
	if err := json.Unmarshal([]byte(document), &object); err != nil {
		t.Fatal(err)
	}
	stale, _, err := jsonpath.MustCompile("$").FirstJSON([]byte(`"stale"`))
	if err != nil {
		t.Fatal(err)
	}
	lists := func(n int) [][]jsonpath.Value {
		out := make([][]jsonpath.Value, n)
		for i := range out {
			out[i] = []jsonpath.Value{stale, stale}
		}
		return out
	}
	states := map[string]func() any{
		"new": func() any { return new(extractionState) },
		"empty": func() any {
			return &extractionState{values: [][]jsonpath.Value{}, elementValues: [][]jsonpath.Value{}}
		},
		"with leftovers": func() any { return &extractionState{values: lists(9), elementValues: lists(9)} },
		"half used":      func() any { return &extractionState{values: lists(9)} },
	}
	defer func() { extractionPool = sync.Pool{New: states["new"]} }()

	indexes := []string{
		"{name: i, path: .spec.c}",
		"{name: i, label: l}",
		"{name: i, each: '.spec.a[*]', key: [{name: x, path: .b}, {name: y, path: .b}]}",
		"{name: i, each: '.spec.a[*]', key: [{name: x, path: $.spec.c}, {name: y, path: $.metadata.name}]}",
		"{name: i, each: '.spec.a[*]', key: [{name: x, path: .b}, {name: y, path: $.metadata.name}]}",
		"{name: i, each: '.spec.none[*]', key: [{name: x, path: $.spec.c}, {name: y, path: $.metadata.name}]}",
	}
	for _, index := range indexes {
		text := "apiVersion: crdcache.dev/v1beta1\nkind: IndexConfig\nmetadata: {name: n}\nspec:\n  resources:\n" +
			"  - name: w\n    match: {group: example.com, kind: Widget}\n    indexes: [" + index + "]\n"
		config, err := Parse(Source{Name: "w.yaml", Data: []byte(text)})
		if err != nil {
			t.Fatal(err)
		}
		f := Compile(config.Resources[0])
		want := f.Keys(object)[0]
		for state, newState := range states {
			extractionPool = sync.Pool{New: newState}
			for range 2 { // the second call may reuse the buffers of the first
				if got := f.KeysJSON([]byte(document), nil)[0]; !slices.Equal(got, want) {
					t.Errorf("KeysJSON of %s with pooled buffers %s = %q, want %q", index, state, got, want)
				}
			}
		}
	}
}
