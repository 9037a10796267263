package jsonpath_test

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// matchesAgree evaluates a filter with each evaluator and its canonical form, fails the test if the results
// differ, and returns the result.
func matchesAgree(t testing.TB, f *jsonpath.Filter, doc []byte) bool {
	t.Helper()
	var obj any
	if err := json.Unmarshal(doc, &obj); err != nil {
		t.Fatal(err)
	}
	want := f.Match(obj)
	if got, err := f.MatchJSONContext(t.Context(), doc); err != nil || got != want {
		t.Errorf("%s on %s: MatchJSONContext = %t, %v; want %t like Match", f, doc, got, err, want)
	}
	n := 0
	err := jsonpath.NewSet(jsonpath.MustCompile("$[0]"), f).FindJSON(doc, func(i int, v jsonpath.Value) bool {
		if i == 1 {
			n++
		}
		return true
	})
	if err != nil || (n == 1) != want {
		t.Errorf("%s on %s: %d results in a set, %v; Match = %t", f, doc, n, err, want)
	}
	again, err := jsonpath.CompileFilter(f.String())
	if err != nil {
		t.Fatalf("%s has the canonical form %s, which does not compile: %v", f.Expr(), f, err)
	}
	if again.String() != f.String() || again.Match(obj) != want {
		t.Errorf("%s has the canonical form %s, which compiles to %s with Match = %t, want the same form and %t",
			f.Expr(), f, again, again.Match(obj), want)
	}
	return want
}

func TestFilterOnBrokenJSON(t *testing.T) {
	var s *jsonpath.SyntaxError
	if ok, err := jsonpath.MustCompileFilter("@.a").MatchJSONContext(t.Context(), []byte(`{"a":1`)); ok ||
		!errors.As(err, &s) {
		t.Errorf("MatchJSONContext() = %t, %v, want a syntax error", ok, err)
	}
}
