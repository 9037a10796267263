//go:build !race

package jsonpath_test

import (
	"testing"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// TestAllocations verifies that evaluations do not allocate. The race detector empties pools at random, so
// this file is not built with it.
func TestAllocations(t *testing.T) {
	obj, doc := decoded(t, certificate), []byte(certificate)
	var exprs []jsonpath.Expr
	for _, e := range eightPaths {
		exprs = append(exprs, jsonpath.MustCompile(e))
	}
	set := jsonpath.NewSet(exprs...)
	values := make([]jsonpath.Value, 0, 64)
	field, list, where, all := jsonpath.MustCompile(fieldPath), jsonpath.MustCompile(listPath),
		jsonpath.MustCompile(filterPath), jsonpath.MustCompile(".metadata.labels.*")
	condition := jsonpath.MustCompileFilter(`!(@.status.conditions[?(@.type=="Ready" && @.status=="True")])`)
	tests := []struct {
		reason string
		run    func() bool
	}{
		{"a field", func() bool { _, ok := field.First(obj); return ok }},
		{"a list", func() bool {
			n := 0
			list.Find(obj, func(any) bool { n++; return true })
			return n == 3
		}},
		{"a filter", func() bool { _, ok := where.First(obj); return ok }},
		{"a condition", func() bool { return !condition.Match(obj) }},
		{"the members of a map", func() bool { _, ok := all.First(obj); return ok }},
		{"a field of JSON", func() bool { _, ok, err := field.FirstJSON(doc); return ok && err == nil }},
		{"a filter on JSON", func() bool { _, ok, err := where.FirstJSON(doc); return ok && err == nil }},
		{"the members of a map of JSON",
			func() bool { _, ok, err := all.FirstJSON(doc); return ok && err == nil }},
		{"appending", func() bool {
			got, err := list.AppendJSON(values[:0], doc)
			return len(got) == 3 && err == nil
		}},
		{"eight paths", func() bool {
			n := 0
			err := set.FindJSON(doc, func(int, jsonpath.Value) bool { n++; return true })
			return n == 10 && err == nil
		}},
	}
	for _, tt := range tests {
		if !tt.run() {
			t.Errorf("%s: the evaluation returned a wrong result", tt.reason)
		}
		if n := testing.AllocsPerRun(200, func() { tt.run() }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", tt.reason, n)
		}
	}
}
