package jsonpath_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

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
