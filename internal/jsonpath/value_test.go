package jsonpath_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/jsontext"
)

func TestValue(t *testing.T) {
	type view struct {
		Kind      jsonpath.Kind
		Raw, Text string // Text is set for strings only
		String    string
		Any       any
	}
	tests := []struct {
		doc  string
		want view
	}{
		{`null`, view{Kind: jsonpath.KindNull, String: "null"}},
		{`true`, view{Kind: jsonpath.KindBool, String: "true", Any: true}},
		{`false`, view{Kind: jsonpath.KindBool, String: "false", Any: false}},
		{`12`, view{Kind: jsonpath.KindNumber, String: "12", Any: int64(12)}},
		{`-0`, view{Kind: jsonpath.KindNumber, String: "-0", Any: int64(0)}},
		{`-9223372036854775808`, view{Kind: jsonpath.KindNumber, String: "-9223372036854775808", Any: int64(math.MinInt64)}},
		{`9223372036854775808`, view{Kind: jsonpath.KindNumber, String: "9223372036854775808", Any: 0x1p63}},
		{`9007199254740993`, view{Kind: jsonpath.KindNumber, String: "9007199254740993", Any: int64(9007199254740993)}},
		{`1.0`, view{Kind: jsonpath.KindNumber, String: "1.0", Any: 1.0}},
		{`1e2`, view{Kind: jsonpath.KindNumber, String: "1e2", Any: 100.0}},
		{`""`, view{Kind: jsonpath.KindString, Any: ""}},
		{`"abc"`, view{Kind: jsonpath.KindString, Text: "abc", String: "abc", Any: "abc"}},
		{`"a\u00e9\n"`, view{Kind: jsonpath.KindString, Text: "aé\n", String: "aé\n", Any: "aé\n"}},
		{"\"a\xffb\"", view{Kind: jsonpath.KindString, Text: "a\ufffdb", String: "a\ufffdb", Any: "a\ufffdb"}},
		{`[1, "x"]`, view{Kind: jsonpath.KindArray, String: `[1, "x"]`, Any: []any{int64(1), "x"}}},
		{`{"a": null}`, view{Kind: jsonpath.KindObject, String: `{"a": null}`, Any: map[string]any{"a": nil}}},
	}
	for _, tt := range tests {
		v, ok, err := jsonpath.MustCompile("$").FirstJSON([]byte(" " + tt.doc + "\n"))
		if !ok || err != nil {
			t.Errorf("FirstJSON(%s) = %v, %v; want a value", tt.doc, ok, err)
			continue
		}
		got := view{Kind: v.Kind(), Raw: string(v.Raw()), String: v.String(), Any: v.Any()}
		if text, ok := v.Text(); ok {
			got.Text = string(text)
		}
		tt.want.Raw = tt.doc
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("value of %s (-want +got):\n%s", tt.doc, diff)
		}
	}
	var zero jsonpath.Value
	if zero.Kind() != jsonpath.KindInvalid || zero.Any() != nil || zero.String() != "" {
		t.Errorf("the zero value has the kind %v and the text %v, want KindInvalid and no text", zero.Kind(),
			zero)
	}
}

// TestNumbersBeyondJSON verifies the comparisons of numbers that Go has and JSON does not.
func TestNumbersBeyondJSON(t *testing.T) {
	obj := map[string]any{"nan": math.NaN(), "inf": math.Inf(1), "ninf": math.Inf(-1), "one": int64(1),
		"half": 0.5, "three": -2.5}
	for expr, want := range map[string]bool{
		"@.nan==@.nan": false, "@.nan!=@.nan": true, "@.nan<=@.nan": false, "@.nan==1": false,
		"@.one!=@.nan": true, "@.one>@.nan": false,
		"@.inf>9223372036854775807": true, "@.ninf<-9223372036854775808": true, "@.one<@.inf": true,
		"@.ninf<@.one": true, "@.inf==@.inf": true,
		"@.half<@.one": true, "@.half>0": true, "@.three<-2": true, "@.three>-3": true, "-2>@.three": true,
	} {
		if got := jsonpath.MustCompileFilter(expr).Match(obj); got != want {
			t.Errorf("Match of %s = %t, want %t", expr, got, want)
		}
	}
}

// TestSetOfManyPaths verifies sets of so many paths below one object that the set uses a map of members.
func TestSetOfManyPaths(t *testing.T) {
	doc := []byte(`{"k0":0,"k1":1,"k2":2,"k3":3,"k4":4,"k5":5,"k6":6,"k7":7,"k8":8,"k9":9,"k10":10,"k11":11,"\u006b11":[12],"x":13}`)
	for n := range 14 {
		var exprs []jsonpath.Expr
		for i := range n {
			exprs = append(exprs, jsonpath.FromSegments(fmt.Sprint("k", i)))
		}
		exprs = append(exprs, jsonpath.MustCompile(".k11[0]"))
		set := jsonpath.NewSet(exprs...)
		if set.Len() != n+1 {
			t.Errorf("Len() = %d, want %d", set.Len(), n+1)
		}
		var got, want []string
		for i := range min(n, 12) {
			if want = append(want, fmt.Sprint(i, ":", i)); i == 11 {
				want[i] = "11:[12]"
			}
		}
		want = append(want, fmt.Sprint(n, ":12"))
		if err := set.FindJSON(doc, func(i int, v jsonpath.Value) bool {
			got = append(got, fmt.Sprint(i, ":", v))
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("results of a set of %d paths (-want +got):\n%s", n+1, diff)
		}
	}
}

func TestSetStopsAndFails(t *testing.T) {
	set := jsonpath.NewSet(jsonpath.MustCompile("$[*]"), jsonpath.MustCompile("$[0]"))
	n := 0
	if err := set.FindJSON([]byte(`[1,2,3]`),
		func(int, jsonpath.Value) bool { n++; return n < 2 }); err != nil || n != 2 {
		t.Errorf("FindJSON called the callback %d times and returned %v, want 2 times and no error", n, err)
	}
	err := set.FindJSON([]byte(`[1,2,3`), func(int,
		jsonpath.Value) bool {
		t.Error("FindJSON called the callback for invalid JSON")
		return true
	})
	var s *jsontext.SyntaxError
	if !errors.As(err, &s) || s.Error() != "unexpected end at offset 6" {
		t.Errorf("FindJSON of invalid JSON: got the error %v, want one about byte 6", err)
	}
	if err := jsonpath.NewSet().FindJSON([]byte(`{}`), nil); err != nil {
		t.Errorf("FindJSON of an empty set: %v", err)
	}
	if err := jsonpath.NewSet().FindJSON([]byte(`{]`), nil); err == nil {
		t.Error("FindJSON() of an empty set accepted invalid JSON")
	}
}

// TestSteps verifies that changing the result of Steps does not change the path.
func TestSteps(t *testing.T) {
	const expr = `.spec['a','b'][-1:][?(@.x.y=="z" && @.w[0])]..*`
	p := jsonpath.MustCompile(expr)
	var got []string
	for _, s := range p.Steps() {
		text := expr[s.Offset:s.End]
		for _, sel := range s.Selectors {
			text += fmt.Sprintf(" %d:%s", sel.Kind, expr[sel.Offset:sel.End])
			if sel.Filter != nil {
				for _, test := range sel.Filter.Tests() {
					operand := test.Path
					for _, s := range operand {
						text += " <" + expr[s.Offset:s.End] + ">"
					}
				}
				text += " " + sel.Filter.Expr()
			}
		}
		got = append(got, text)
	}
	want := []string{
		".spec 0:spec",
		"['a','b'] 0:'a' 0:'b'",
		"[-1:] 2:-1:",
		`[?(@.x.y=="z" && @.w[0])] 5:?(@.x.y=="z" && @.w[0]) <.x> <.y> <.w> <[0]> (@.x.y=="z" && @.w[0])`,
		"..* 4:..*",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Steps (-want +got):\n%s", diff)
	}

	before := p.String()
	for _, s := range p.Steps() {
		s.Selectors[0] = jsonpath.Selector{}
	}
	if p.String() != before {
		t.Errorf("changing the result of Steps changed the path to %s", p)
	}
}

func TestSingular(t *testing.T) {
	for expr, want := range map[string]bool{
		"$": true, ".a.b[0]['c'][-1]": true, ".a[*]": false, ".*": false, "..a": false, "['a','b']": false,
		"[0:1]": false, "[?(@)]": false,
	} {
		if got := jsonpath.MustCompile(expr).Singular(); got != want {
			t.Errorf("%s: Singular() = %t, want %t", expr, got, want)
		}
	}
}

func TestMustCompilePanics(t *testing.T) {
	defer func() {
		if err, _ := recover().(error); !errors.As(err, new(*jsonpath.Error)) {
			t.Errorf("MustCompile() panicked with %v, want an Error", err)
		}
	}()
	jsonpath.MustCompile("{")
}

func TestSplitList(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                {""},
		"a, b desc":                       {"a", "b desc"},
		`.a\'b, .c\'d`:                    {`.a\'b`, `.c\'d`},
		".a['x,y'],b":                     {".a['x,y']", "b"},
		`.a["x\",],y"],b`:                 {`.a["x\",],y"]`, "b"},
		".a[?(@.b == 1, 2)] desc,.c[0,1]": {".a[?(@.b == 1, 2)] desc", ".c[0,1]"},
		"$.a]],b":                         {"$.a]]", "b"},
	} {
		if got := jsonpath.SplitList(text); !slices.Equal(got, want) {
			t.Errorf("SplitList(%q) = %q, want %q", text, got, want)
		}
	}
}
