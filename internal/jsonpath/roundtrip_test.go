package jsonpath_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// checkRoundTrip verifies that the canonical form compiles to a path with the same canonical form, without
// warnings about quoting.
func checkRoundTrip(t testing.TB, p *jsonpath.Path) {
	t.Helper()
	text := p.String()
	again, err := jsonpath.Compile(text)
	if err != nil {
		t.Fatalf("%q has the canonical form %q, which does not compile: %v", p.Expr(), text, err)
	}
	if again.String() != text {
		t.Fatalf("%q has the canonical form %q, whose canonical form is %q", p.Expr(), text, again)
	}
	if p.Singular() != again.Singular() {
		t.Fatalf("%q and its canonical form %q differ in Singular()", p.Expr(), text)
	}
	for _, w := range again.Warnings() {
		if w.Code == jsonpath.CodeOneKey {
			t.Fatalf("%q has the canonical form %q with the warning %v", p.Expr(), text, w)
		}
	}
}

func TestCanonicalForm(t *testing.T) {
	tests := []struct{ expr, want string }{
		{" {  $ } ", "$"},
		{"{$.spec['x']}", ".spec.x"},
		{`$['a.b']["c d"]`, `.a\.b["c d"]`},
		{`..['a b',*]`, `..["a b",*]`},
		{"$[1:2:1]", "$[1:2]"},
		{"$[?(((@.a)))]", "$[?(@.a)]"},
		{"$[?@==1&&@==2&&(@==3&&@==4)]", "$[?(@ == 1 && @ == 2 && @ == 3 && @ == 4)]"},
		{"$[?(@.a||@.b)&&@.c]", "$[?((@.a || @.b) && @.c)]"},
		{"$[?@.a||@.b&&@.c]", "$[?(@.a || @.b && @.c)]"},
		{"$[?!!@.a]", "$[?(!(!(@.a)))]"},
		{"$[?@=='a\"b']", `$[?(@ == "a\"b")]`},
		{"$[?@==1e400e]", ""},
		{"$[?@==1e30]", "$[?(@ == 1e+30)]"},
		{"$[?@[0].a>=@['b c']]", `$[?(@[0].a >= @["b c"])]`},
	}
	for _, tt := range tests {
		p, err := jsonpath.Compile(tt.expr)
		if tt.want == "" {
			if err == nil {
				t.Errorf("Compile(%s) = %s, want an error", tt.expr, p)
			}
			continue
		}
		if err != nil {
			t.Errorf("Compile(%s): %v", tt.expr, err)
			continue
		}
		if p.String() != tt.want {
			t.Errorf("Compile(%s) = %s, want %s", tt.expr, p, tt.want)
		}
		checkRoundTrip(t, p)
	}
}

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

// TestComparisons verifies that Tests returns comparisons with the path on the left and the position of the
// literal.
func TestComparisons(t *testing.T) {
	tests := []struct {
		condition string
		want      []string
	}{
		{`@.a == "x"`, []string{`a == "x" at "x"`}},
		{`'x' < @.a`, []string{`a > "x" at 'x'`}},
		{`-1.5>=@.a`, []string{`a <= -1.5 at -1.5`}},
		{`@.a == null || !(@.b != true && +3 >  @.c)`, []string{`a == <nil> at null`, `b != true at true`,
			`c < 3 at +3`}},
		{`@.a == @.b || @.c || !@.d || 1 == 2`, nil},
		{`@.a[?(@.b == 1)]`, nil}, // the comparison is inside a nested filter
		{`("é" <= @.a)`, []string{`a >= "é" at "é"`}},
	}
	for _, test := range tests {
		f, err := jsonpath.CompileFilter(test.condition)
		if err != nil {
			t.Errorf("CompileFilter(%s): %v", test.condition, err)
			continue
		}
		var got []string
		for _, c := range f.Tests() {
			if !c.HasLiteral {
				continue
			}
			literal := fmt.Sprint(c.Literal)
			if s, ok := c.Literal.(string); ok {
				literal = fmt.Sprintf("%q", s)
			}
			got = append(got, fmt.Sprintf("%s %s %s at %s", c.Path[0].Selectors[0].Name, c.Op, literal,
				test.condition[c.Offset:c.End]))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("Tests of %s (-want +got):\n%s", test.condition, diff)
		}
	}
}
