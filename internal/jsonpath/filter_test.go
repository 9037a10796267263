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

func TestFilter(t *testing.T) {
	const (
		ready    = `{"spec":{"paused":false,"replicas":3,"class":null},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`
		notReady = `{"spec":{"replicas":2.0},"status":{"conditions":[{"type":"Ready","status":"False"},{"type":"Issuing","status":"True"}]}}`
		created  = `{"spec":{}}`
	)
	tests := []struct {
		expr    string
		matches [3]bool // ready, notReady, created
	}{
		{`!(@.status.conditions[?(@.type=="Ready" && @.status=="True")])`, [3]bool{false, true, true}},
		{`@.status.conditions[?(@.type=="Ready" && @.status=="True")]`, [3]bool{true, false, false}},
		{`@.spec.replicas>2`, [3]bool{true, false, false}},
		{`@.spec.replicas==2`, [3]bool{false, true, false}},
		{`@.spec.paused==true`, [3]bool{false, false, false}},
		{`@.spec.paused!=true`, [3]bool{true, false, false}},
		{`!(@.spec.paused==true)`, [3]bool{true, true, true}},
		{`@.spec.paused`, [3]bool{true, false, false}},
		{`@.spec.class`, [3]bool{true, false, false}},
		{`@.spec.class==null`, [3]bool{true, false, false}},
		{`!@.status`, [3]bool{false, false, true}},
		{`.spec.replicas`, [3]bool{true, true, false}},
		{`@`, [3]bool{true, true, true}},
		{`@.status.conditions[1] || !@.status`, [3]bool{false, true, true}},
		{`1 < 2`, [3]bool{true, true, true}},
		{" @.spec.replicas >= 2\n && @.spec.replicas < 3 ", [3]bool{false, true, false}},
	}
	for _, tt := range tests {
		f, err := jsonpath.CompileFilter(tt.expr)
		if err != nil {
			t.Errorf("CompileFilter(%s): %v", tt.expr, err)
			continue
		}
		for i, doc := range []string{ready, notReady, created} {
			if got := matchesAgree(t, f, []byte(doc)); got != tt.matches[i] {
				t.Errorf("Match(%s) of %s = %t, want %t", doc, tt.expr, got, tt.matches[i])
			}
		}
	}
}

func TestFilterOnBrokenJSON(t *testing.T) {
	var s *jsonpath.SyntaxError
	if ok, err := jsonpath.MustCompileFilter("@.a").MatchJSONContext(t.Context(), []byte(`{"a":1`)); ok ||
		!errors.As(err, &s) {
		t.Errorf("MatchJSONContext() = %t, %v, want a syntax error", ok, err)
	}
}
