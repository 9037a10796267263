package jsonpath_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/jsontext"
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
	var s *jsontext.SyntaxError
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

// maxVisits, multiplied by the bytes of the document and of the expression, is the maximum number of visited
// values. It is twice maxUnionOverlap, because some steps count a value when they collect it and again when
// they visit it.
const maxVisits = 32

// checkVisits fails the test if an expression visits more values of a document than allowed.
func checkVisits(t *testing.T, expr string, doc []byte) {
	t.Helper()
	var obj any
	if json.Unmarshal(doc, &obj) != nil {
		return
	}
	limit := maxVisits * (len(doc) + 1) * (len(expr) + 1)
	if p, err := jsonpath.Compile(expr); err == nil {
		if n := jsonpath.Visited(p, obj); n > limit {
			t.Errorf("%s visits %d values of %s, want at most %d", expr, n, doc, limit)
		}
	}
	if f, err := jsonpath.CompileFilter(expr); err == nil {
		if n := jsonpath.VisitedByFilter(f, obj); n > limit {
			t.Errorf("%s visits %d values of %s, want at most %d", expr, n, doc, limit)
		}
	}
}

// expensiveExpressions has expressions that would multiply the work without limits, each with a document that
// reveals it.
var expensiveExpressions = []struct {
	expr string
	doc  []byte
}{
	{".a" + strings.Repeat("[0,0].a", 12), nested(`{"a":[`, "1", "]}", 14)},
	{"$" + strings.Repeat("[*,*]", 12), nested("[", "1", "]", 14)},
	{"$" + strings.Repeat("[0,-1]", 12), nested("[", "1", "]", 14)},
	{"$" + strings.Repeat("[?(@),0]", 12), nested("[", "1", "]", 14)},
	{"$" + strings.Repeat("[0:,:]", 12), nested("[", "1", "]", 14)},
	{"$" + strings.Repeat("['a','a']", 12), nested(`{"a":`, "1", "}", 14)},
	{"$" + strings.Repeat("..a", 6), nested(`{"a":`, "1", "}", 40)},
	{"@..*..*..*", nested(`{"a":[`, "1", "]}", 40)},
	{strings.Repeat("$..*[?(@..*", 1) + strings.Repeat("[?(@..*", 3) + strings.Repeat(")]", 4),
		nested("[", "1", "]", 40)},
	{"$..*[?(@==@.a)]", nested(`{"a":`, "1", "}", 40)},
	{"..a", nested(`{"a":`, "1", "}", 400)},
	{"$..*[?(@.a.a.a.a)]", nested(`{"a":`, "1", "}", 400)},
	{"$" + strings.Repeat("[?(@..a)]", 20), nested("[", "1", "]", 40)},
	{"$..['a','b','c']['a','b','c']['a','b','c']", nested(`{"b":2,"a":`, "1", "}", 400)},
	{"$[" + strings.Repeat("::1,", 15) + "::1]", []byte("[" + strings.Repeat("1,", 999) + "1]")},
	{"$[?(" + strings.Repeat("@.a==1||", 200) + "@.b)]", []byte("[" + strings.Repeat(`{"a":2},`, 99) + "1]")},
}

// TestVisitsAreBounded verifies that an expression either does not compile or visits a bounded number of
// values.
func TestVisitsAreBounded(t *testing.T) {
	compiled := 0
	for _, c := range expensiveExpressions {
		checkVisits(t, c.expr, c.doc)
		if _, err := jsonpath.Compile(c.expr); err == nil {
			compiled++
		}
	}
	if compiled != 6 {
		t.Errorf("%d of the expressions compile, want the last 6", compiled)
	}
	for seed := range uint64(2000) {
		r := newRandom(seed, false)
		checkVisits(t, "$"+r.anyPath(6), []byte(r.document(5)))
	}
}

func FuzzVisits(f *testing.F) {
	for _, c := range expensiveExpressions {
		f.Add(c.expr, c.doc)
	}
	f.Fuzz(checkVisits)
}

// limitedContext is a context that ends after a number of checks.
type limitedContext struct {
	context.Context
	checks int
}

func (c *limitedContext) Err() error {
	if c.checks--; c.checks < 0 {
		return context.Canceled
	}
	return nil
}

// TestEvaluationEndsWithItsContext verifies that every evaluation stops in the middle of a document when its
// context ends.
func TestEvaluationEndsWithItsContext(t *testing.T) {
	const elements = 100_000
	doc := []byte(`{"a":[` + strings.Repeat(`{"b":{"c":1}},`, elements-1) + `{"b":{"c":1},"d":2}]}`)
	obj := decoded(t, string(doc))
	for _, expr := range []string{".a[*].b", ".a[*].b.*", "..c", ".a[?(@.b)].b", ".a[::2]", ".a[*,0].b",
		".a.*", `.a[?(@.none=="x")]`, ".a[?(@..none)]"} {
		p := jsonpath.MustCompile(expr)
		found := 0
		count := func() bool { found++; return true }
		for form, find := range map[string]func(context.Context) error{
			"decoded": func(ctx context.Context) error {
				return p.FindContext(ctx, obj, func(any) bool { return count() })
			},
			"JSON": func(ctx context.Context) error {
				return p.FindJSONContext(ctx, doc, func(jsonpath.Value) bool { return count() })
			},
		} {
			found = 0
			if err := find(t.Context()); err != nil {
				t.Errorf("%s, %s: %v", expr, form, err)
			}
			all := found
			found = 0
			if err := find(&limitedContext{t.Context(), 3}); !errors.Is(err, context.Canceled) || all > 0 &&
				found >= all/10 {
				t.Errorf("%s, %s: error %v after %d of %d results, want context.Canceled before a tenth",
					expr, form, err, found, all)
			}
		}
	}
	for _, text := range []string{"@.a[?(@.d==3)]", "!(@.a[?(@.d==3)])", "@..e || @.a",
		`@.a[?(@.d==2)] && @.a[?(@.d==2)]`} {
		f := jsonpath.MustCompileFilter(text)
		if holds, err := f.MatchContext(&limitedContext{t.Context(), 3}, obj); holds ||
			!errors.Is(err, context.Canceled) {
			t.Errorf("%s: MatchContext() = %v, %v, want false, context.Canceled", text, holds, err)
		}
		if holds, err := f.MatchJSONContext(&limitedContext{t.Context(), 3}, doc); holds ||
			!errors.Is(err, context.Canceled) {
			t.Errorf("%s: MatchJSONContext() = %v, %v, want false, context.Canceled", text, holds, err)
		}
	}
}
