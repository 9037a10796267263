package jsonpath_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// badPaths has paths that do not compile. testdata/errors.golden has the text of each error.
var badPaths = []string{
	// empty
	``, ` `, `{}`, `{ }`, `.`, `{.}`,
	// unexpected characters
	`.a=b`, `.a}`, `.a]`, `.a, .b`, `.a | .b`, `.a?`, `.a!`, `.a;b`, `.a"b"`, `.a('b')`, `.a$b`, `.a@b`, `$a`,
	`@a`, `!a`, `"a"`, `.a b`, `.a{.b}`, `{.a b}`, `{{.a}}`, `{.a,.b}`, "\x00",
	// unclosed brackets and braces
	`{.a`, `{.a[0]`, `.a[`, `.a[0`, `.a['b'`, `.a[0,`, `.a[?(@.b]`, `.a[?(@.b)`, `.a[?((@.b)]`, `{.a[?(@.b}`,
	// kubectl templates with more than a path
	`Name: {.a}`, `{.a} ` + `x`, `{.a}, `, `{.a}{.b}`, `{.a} {.b}`, `jsonpath={.a}`,
	`{range .items[*]}{.a}{end}`, `range .items[*]`, `{range}`, `{end}`, "{.a}\n{.b}",
	// Names.
	`.a.`, `.a..`, `..`, `$..`, `...a`, `.a...b`, `.a.[0]`, `.a.['b']`, `*`, `.a*`, `.*a`, `.a\`,
	`..?(@.a)`, `.a..(b)`,
	// Brackets.
	`.a[]`, `.a[,]`, `.a[0,]`, `.a[b]`, `.a[“b”]`, `.a[b.c, 1]`, `.a[@.b=="c"]`, `.a[.b]`, `.a[#]`,
	`.a['b'.c]`, `.a[0 1]`, `.a[*.b]`, `.a[=]`,
	// Indexes and slices.
	`.a[01]`, `.a[-]`, `.a[-01]`, `.a[1.5]`, `.a[1a]`, `.a[99999999999999999999]`, `.a[::0]`, `.a[1:2:3:4]`,
	`.a[1:b]`, `.a[+1]`, `.status.conditions[Ready].status`, `.conditions[my-type]`, `.spec.Foo[Bar2]`,
	// Quoted keys and strings.
	`.a['b]`, `.a["b']`, `.a['\x']`, `.a['\u12']`, `.a['\ud800']`, `.a['\ud800\u0041']`, `.a['\udc00']`,
	".a['b\nc']", `.a[?(@.b=="c)]`, `.a[?(@.b=="c\.d")]`,
	// Numbers.
	`.a[?(@.b==1.)]`, `.a[?(@.b==.5)]`, `.a[?(@.b==01)]`, `.a[?(@.b==1x)]`, `.a[?(@.b==--1)]`,
	`.a[?(@.b==1e999)]`, `.a[?(@.b==-)]`, `.a[?(@.b==1h30m)]`,
	// Comparison operators.
	`.status.conditions[?(@.type="Ready")]`, `.a[?(@.b===1)]`, `.a[?(@.b=~"x.*")]`, `.a[?(@.b<>1)]`,
	`.a[?(@.b=>1)]`, `.a[?(@.b=<1)]`, `.a[?(@.b!1)]`, `.a[?(1<@.b<3)]`, `.a[?((@.b)==1)]`,
	// Operands.
	`.a[?]`, `.a[?()]`, `.a[?(@.b==)]`, `.a[?(==1)]`, `.a[?(!=1)]`, `.a[?(1)]`, `.a[?("x")]`, `.a[?(true)]`,
	`.a[?(@.b==c)]`, `.a[?(b==1)]`, `.a[?(@.b==True)]`, `.a[?(@.b==nil)]`, `.a[?(@.b==“c”)]`,
	`.a[?(not @.b)]`, `.a[?(@.b &&)]`, `.a[?(&& @.b)]`, `.a[?(@b)]`, `.a[?(@.b==[1])]`, `.a[?(*==1)]`,
	`.a[?(@.b,)]`, `.a[?(@.b==%)]`,
	// comparisons of many values
	`.a[?(@.b[*]=="c")]`, `.a[?("c"==@.b.*)]`, `.a[?(@..b==1)]`, `.a[?(@['b','c']==1)]`, `.a[?(@.b[0:1]!=1)]`,
	// Logic.
	`.a[?(@.b & @.c)]`, `.a[?(@.b | @.c)]`, `.a[?(@.b and @.c)]`, `.a[?(@.b==1 or @.c==2)]`,
	`.a[?(@.b eq 1)]`, `.a[?(@.b matches "x")]`, `.a[?(!@.b==1)]`, `.a[?(@.b @.c)]`,
	`.a[?(@.b))]`, `.a[?@.b}]`,
	// syntax of other languages
	`.a[?(length(@.b)>1)]`, `.a[?(@.b.length()>1)]`, `.a[(@.length-1)]`, `.a[?(@.b==$.c)]`, `.a[?($.c)]`,
	`.a[?(@.b in ['x'])]`,
	// Limits.
	`.a[?` + strings.Repeat("(", 100), `.a[?` + strings.Repeat("!", 100) + `@]`, strings.Repeat("[?@",
		70), "." + strings.Repeat("a", 20000), ".a\xffb",
	// Work.
	`..a..b`, `.a..b[0]..c`, `..a[?(@..b)]`, `.a[?(@..b..c)]`, `.a[0,0].b[0,0].c[0,0].d[0,0].e[0,0].f`,
	`.a[0,-1,*,:][0,-1,*,:].b[0,0]`, `..a[?(@.b==@.c)]`, `..a[?(@.b[?(@.c == @.d)])]`,
	// positions in non-ASCII text and on later lines
	`.größe[?(@.名="x")]`, ".spec\n\t.conditions[?(@.type=\"Ready\")]\n\t.status",
}

// badFilters has conditions that do not compile.
var badFilters = []string{
	``, `{@.a}`, `[?(@.a)]`, `?(@.a)`, `@.a=1`, `@.a)`, `(@.a`, `@.a @.b`, `$.a`, `spec.a`, `"x"`,
	`@.a[*]==1`, `@.a,@.b`, `@.a}`, `@.a]`,
}

// TestErrors verifies the text and the position of the error for each invalid expression.
func TestErrors(t *testing.T) {
	var b strings.Builder
	add := func(expr string, err error) {
		var e *jsonpath.Error
		if !errors.As(err, &e) || e.Expr != expr {
			t.Errorf("%q: error %v, want an Error with the expression", expr, err)
			return
		}
		caret := e.Caret()
		if len(expr) > 200 { // shorten long expressions
			expr, caret = expr[:20]+"...", "..."
		}
		fmt.Fprintf(&b, "%q\n%v\n", expr, err)
		for line := range strings.SplitSeq(caret, "\n") {
			fmt.Fprintf(&b, "    %s\n", strings.ToValidUTF8(line, "?"))
		}
		b.WriteByte('\n')
	}
	for _, expr := range badPaths {
		_, err := jsonpath.Compile(expr)
		add(expr, err)
	}
	b.WriteString("--- conditions\n\n")
	for _, expr := range badFilters {
		_, err := jsonpath.CompileFilter(expr)
		add(expr, err)
	}
	want, err := os.ReadFile("testdata/errors.golden")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), strings.ReplaceAll(b.String(), "\x00", "?")); diff != "" {
		t.Errorf("testdata/errors.golden (-want +got):\n%s", diff)
	}
}

func TestWarnings(t *testing.T) {
	tests := []struct {
		expr string
		want []string
	}{
		{`.spec.x`, nil},
		{`.a['b']`, nil},
		{`.metadata.labels['a.b/c']`,
			[]string{`1:18: W101: ['a.b/c'] is read as one key; kubectl reads a → b/c`}},
		{`.metadata.labels["a.b/c"]`, nil},
		{`.metadata.labels['a\.b/c']`, nil},
		{`.metadata.labels.a\.b/c`, nil},
		{`$['x','a\.b.c']`, []string{`1:7: W101: ['a\.b.c'] is read as one key; kubectl reads a.b → c`}},
		{`$['*']`, []string{`1:3: W101: ['*'] is read as one key; kubectl reads *`}},
		{`..x`, []string{
			`1:1: W102: ".." visits everything below, in every object; name the fields on the way where you can`}},
		{`.items.0.name`, []string{`1:8: W103: 0 is read as a key; write [0] for an index`}},
		{`.items["0"]`, nil},
		{"“.a”", []string{
			"1:1: W105: the typographic quote “ is read as part of a name; remove it, or put the name in brackets and plain quotes",
			"1:4: W105: the typographic quote ” is read as part of a name; remove it, or put the name in brackets and plain quotes",
		}},
		{".a\u00a0", []string{
			"1:3: W105: the invisible character U+00A0 is read as part of a name; remove it, or put the name in brackets and plain quotes"}},
		{`.a\“`, nil},
		{`["“a”"]`, nil},
		{`.größe`, nil},
		{`.a[?(@.b==1)][?(@.c==2)]`,
			[]string{
				`1:14: W104: a filter after a filter looks inside each element; use && for a second condition on the same elements`}},
		{`.a[?(@.b==1)].c[?(@.d==2)]`, nil},
		{`.a[?(@..b && @['c.d']==1)]`, []string{
			`1:7: W102: ".." visits everything below, in every object; name the fields on the way where you can`,
			`1:16: W101: ['c.d'] is read as one key; kubectl reads c → d`,
		}},
	}
	for _, tt := range tests {
		var got []string
		for _, w := range jsonpath.MustCompile(tt.expr).Warnings() {
			got = append(got, (&jsonpath.Error{Diagnostic: w}).Error())
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("Warnings of %s (-want +got):\n%s", tt.expr, diff)
		}
	}
	f := jsonpath.MustCompileFilter(`@..a`)
	if w := f.Warnings(); len(w) != 1 || w[0].Code != jsonpath.CodeRecursive {
		t.Errorf("warnings of a filter: %v, want one with CodeRecursive", w)
	}
}

func TestDiagnosticForms(t *testing.T) {
	_, err := jsonpath.Compile(".spec\n\t.größe[?(@.type=\"x\")]")
	var e *jsonpath.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	if got, want := e.Text(), `E104: "=" is not a comparison; use "=="`; got != want {
		t.Errorf("Text() = %s, want %s", got, want)
	}
	if got, want := e.Error(), `2:17: E104: "=" is not a comparison; use "=="`; got != want {
		t.Errorf("Error() = %s, want %s", got, want)
	}
	if got, want := e.Caret(), "\t.größe[?(@.type=\"x\")]\n\t               ^"; got != want {
		t.Errorf("Caret() =\n%s\nwant\n%s", got, want)
	}
	// invalid positions must not panic
	for _, d := range []jsonpath.Diagnostic{{}, {Expr: "ab", Offset: 7, Length: 9}, {Expr: "ab", Offset: -1},
		{Expr: "ab\r\nc", Offset: 1, Length: 4}, {Expr: "ab\r\nc", Offset: 3, Length: 1}} {
		_, _ = (&jsonpath.Error{Diagnostic: d}).Error(), d.Caret()
	}
}
