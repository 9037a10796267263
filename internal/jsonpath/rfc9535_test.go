package jsonpath_test

import (
	"bytes"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/jsontext"
)

// TestRFC9535 tests the rules of RFC 9535 that this language shares. docs/jsonpath.md lists the differences.
func TestRFC9535(t *testing.T) {
	const (
		letters = `["a","b","c","d","e","f","g"]`
		shop    = `{"shop":{"tea":[{"name":"assam","price":4,"bio":true},{"name":"sencha","price":7.5},{"name":"rooibos","price":3,"bio":null}],"pot":{"price":20}}}`
		mixed   = `[0,1,2.0,"1","",true,false,null,[1],[],{"a":1},{}]`
		pairs   = `[{"l":1,"r":1},{"l":1,"r":1.0},{"l":"1","r":1},{"l":null,"r":null},{"l":null},{"r":2},{"l":[1,2],"r":[1,2.0]},{"l":[1,2],"r":[2,1]},{"l":{"a":1,"b":2},"r":{"b":2,"a":1}},{"l":{"a":1},"r":{"a":1,"b":2}},{"l":true,"r":true},{"l":"a","r":"b"}]`
	)
	tests := []struct {
		rule, path, doc, want string
	}{
		// Names.
		{"a name in single quotes", `$['a']`, `{"a":1}`, `[1]`},
		{"a name in double quotes", `$["a"]`, `{"a":1}`, `[1]`},
		{"quotes of the other kind need no escape", `$["'"]['"']`, `{"'":{"\"":1}}`, `[1]`},
		{"a name is compared character by character", `$["\u00e9"]`, `{"é":1,"e\u0301":2}`, `[1]`},
		{"a surrogate pair is one character", `$["\uD83D\uDE00"]`, `{"😀":1}`, `[1]`},
		{"a name selects nothing from a list", `$['0']`, `["x"]`, `[]`},
		{"names are case-sensitive", `$.A`, `{"a":1}`, `[]`},
		{"blanks between brackets", "$ \n [\t'a' ] ['b']", `{"a":{"b":1}}`, `[1]`},

		// Wildcards.
		{".* on a list", `$.*`, letters, letters},
		{".* on a map", `$.*`, `{"y":1,"x":2}`, `[2,1]`},
		{".* on a scalar", `$.a.*`, `{"a":1}`, `[]`},
		{"[*] on a list", `$[*]`, letters, letters},
		{"[*] on a map differs: nothing, since [*] is for lists", `$[*]`, `{"a":1}`, `[]`},
		{"wildcards in a row", `$.*.*`, `[[1,2],{"a":3},4]`, `[1,2,3]`},

		// Indexes.
		{"the first", `$[0]`, letters, `["a"]`},
		{"from the end", `$[-2]`, letters, `["f"]`},
		{"beyond the end", `$[7]`, letters, `[]`},
		{"beyond the start", `$[-8]`, letters, `[]`},
		{"of an empty list", `$[0]`, `[]`, `[]`},

		// Slices.
		{"start and end", `$[1:3]`, letters, `["b","c"]`},
		{"no end", `$[5:]`, letters, `["f","g"]`},
		{"no start", `$[:2]`, letters, `["a","b"]`},
		{"neither", `$[:]`, letters, letters},
		{"two colons", `$[::]`, letters, letters},
		{"a step", `$[1:5:2]`, letters, `["b","d"]`},
		{"only a step", `$[::3]`, letters, `["a","d","g"]`},
		{"backwards", `$[5:1:-2]`, letters, `["f","d"]`},
		{"reversed", `$[::-1]`, letters, `["g","f","e","d","c","b","a"]`},
		{"reversed from a start", `$[2::-1]`, letters, `["c","b","a"]`},
		{"reversed to an end", `$[:4:-1]`, letters, `["g","f"]`},
		{"reversed to a negative end", `$[:-3:-1]`, letters, `["g","f"]`},
		{"negative bounds", `$[-3:-1]`, letters, `["e","f"]`},
		{"the end is clamped", `$[5:100]`, letters, `["f","g"]`},
		{"the start is clamped", `$[-100:2]`, letters, `["a","b"]`},
		{"both are clamped, backwards", `$[100:-100:-3]`, letters, `["g","d","a"]`},
		{"empty when end is before start", `$[3:1]`, letters, `[]`},
		{"empty when equal", `$[2:2]`, letters, `[]`},
		{"empty when both are beyond the end", `$[8:9]`, letters, `[]`},
		{"a step larger than the list", `$[1::100]`, letters, `["b"]`},
		{"the largest step", `$[1::9223372036854775807]`, letters, `["b"]`},
		{"the smallest step", `$[::-9223372036854775808]`, letters, `["g"]`},
		{"the largest bounds", `$[-9223372036854775808:9223372036854775807]`, letters, letters},
		{"blanks", `$[ 1 : 5 : 2 ]`, letters, `["b","d"]`},
		{"of a map", `$[0:1]`, `{"0":1}`, `[]`},
		{"of an empty list", `$[::-1]`, `[]`, `[]`},

		// Several selectors.
		{"in the order written", `$[3,0]`, letters, `["d","a"]`},
		{"twice the same", `$[0,0]`, letters, `["a","a"]`},
		{"an index and a slice", `$[6,0:2]`, letters, `["g","a","b"]`},
		{"per value, not per selector", `$.*['a','b']`, `[{"a":1,"b":2},{"b":4,"a":3}]`, `[1,2,3,4]`},

		// Descendants.
		{"a name at any depth", `$..price`, shop, `[20,4,7.5,3]`},
		{"an index at any depth", `$..[1].name`, shop, `["sencha"]`},
		{"parents before children, elements in order", `$..*`, `[[[1]],[2]]`, `[[[1]],[2],[1],1,2]`},
		{"from a node that is not there", `$.x..*`, shop, `[]`},
		{"several selectors at any depth", `$..['name','bio']`, shop,
			`["assam",true,"sencha","rooibos",null]`},

		// Filters: existence.
		{"a member exists", `$.shop.tea[?@.bio].name`, shop, `["assam","rooibos"]`},
		{"null exists", `$[?@.a]`, `[{"a":null},{"b":1}]`, `[{"a":null}]`},
		{"false exists", `$[?@.a]`, `[{"a":false},{}]`, `[{"a":false}]`},
		{"a member does not exist", `$.shop.tea[?!@.bio].name`, shop, `["sencha"]`},
		{"the value itself always exists", `$[?@]`, mixed, mixed},
		{"any of many exists", `$[?@.*]`, mixed, `[[1],{"a":1}]`},
		{"something at any depth exists", `$[?@..x]`, `[{"a":[{"x":1}]},{"y":1}]`, `[{"a":[{"x":1}]}]`},
		{"the filter of a map selects values", `$[?@>1]`, `{"b":3,"a":2,"c":1}`, `[2,3]`},
		{"the filter of a scalar selects nothing", `$.a[?@]`, `{"a":"xyz"}`, `[]`},

		// Filters: comparisons.
		{"equal numbers, whatever their form", `$[?@==2]`, mixed, `[2.0]`},
		{"a number is not a string", `$[?@==1]`, mixed, `[1]`},
		{"a string is not a number", `$[?@=="1"]`, mixed, `["1"]`},
		{"true", `$[?@==true]`, mixed, `[true]`},
		{"false", `$[?@==false]`, mixed, `[false]`},
		{"null", `$[?@==null]`, mixed, `[null]`},
		{"less, among numbers only", `$[?@<2]`, mixed, `[0,1]`},
		{"less or equal", `$[?@<=2]`, mixed, `[0,1,2.0]`},
		{"greater", `$[?@>0.5]`, mixed, `[1,2.0]`},
		{"greater or equal", `$[?@>=1e0]`, mixed, `[1,2.0]`},
		{"less, among strings only", `$[?@<"1"]`, mixed, `[""]`},
		{"strings by code point", `$[?@>"z"]`, `["Z","a","zz","é","😀"]`, `["zz","é","😀"]`},
		{"bools have no order but equal themselves", `$[?@<=true]`, mixed, `[true]`},
		{"null is less or equal to null", `$[?@<=null]`, mixed, `[null]`},
		{"null is not less than null", `$[?@<null]`, mixed, `[]`},
		{"unequal kinds are unequal", `$[?@!=1]`, `[1,"1",null,1.0,2]`, `["1",null,2]`},
		{"the literal may come first", `$[?1<@]`, mixed, `[2.0]`},
		{"two literals", `$[?1==1.0]`, `[1]`, `[1]`},
		{"two paths, compared in depth", `$[?@.l==@.r]`, pairs,
			`[{"l":1,"r":1},{"l":1,"r":1.0},{"l":null,"r":null},{"l":[1,2],"r":[1,2.0]},{"l":{"a":1,"b":2},"r":{"b":2,"a":1}},{"l":true,"r":true}]`},
		{"two paths, ordered", `$[?@.l<@.r]`, pairs, `[{"l":"a","r":"b"}]`},
		{"containers equal themselves, so they are less or equal", `$[?@.l<=@.r].l`,
			`[{"l":[1],"r":[1]},{"l":[1],"r":[2]}]`, `[[1]]`},
		{"a path with an index", `$[?@[0]==1]`, `[[1,2],[2,1],{"0":1}]`, `[[1,2]]`},
		{"a path with a negative index", `$[?@[-1]==1]`, `[[1,2],[2,1],[]]`, `[[2,1]]`},
		{"a nested path", `$[?@.a['b'].c==1]`, `[{"a":{"b":{"c":1}}},{"a":{"b":1}}]`,
			`[{"a":{"b":{"c":1}}}]`},
		{"a missing value compares as false; != differs from the RFC", `$[?@.a!="x"]`,
			`[{"a":"x"},{"a":"y"},{"b":1}]`, `[{"a":"y"}]`},
		{"two missing values; == differs from the RFC", `$[?@.a==@.b]`, `[{}]`, `[]`},
		{"the RFC's reading of != is the negation of ==", `$[?!(@.a=="x")]`, `[{"a":"x"},{"a":"y"},{"b":1}]`,
			`[{"a":"y"},{"b":1}]`},

		// Filters: logic.
		{"and", `$[?@>0 && @<2]`, mixed, `[1]`},
		{"or", `$[?@==0 || @=="1"]`, mixed, `[0,"1"]`},
		{"and binds closer than or", `$[?@==0 || @>0 && @<2]`, mixed, `[0,1]`},
		{"parentheses", `$[?(@==0 || @>0) && @<2]`, mixed, `[0,1]`},
		{"not binds closest", `$[?!@.a && !@.b]`, `[{"a":1},{"b":1},{"c":1}]`, `[{"c":1}]`},
		{"not of parentheses", `$[?!(@.a || @.b)]`, `[{"a":1},{"b":1},{"c":1}]`, `[{"c":1}]`},
		{"a filter in a filter", `$[?@.x[?@.y>1]].n`, `[{"n":1,"x":[{"y":1}]},{"n":2,"x":[{"y":1},{"y":2}]}]`,
			`[2]`},
		{"many filters in brackets", `$[?@==1,?@==0]`, mixed, `[1,0]`},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			p := jsonpath.MustCompile(tt.path)
			if diff := cmp.Diff(list(t, tt.want), evaluate(t, p, []byte(tt.doc)), valueOptions); diff != "" {
				t.Errorf("results of %s (-want +got):\n%s", tt.path, diff)
			}
			checkRoundTrip(t, p)
		})
	}
}

// TestNumbersCompareExactly verifies that numbers compare exactly, even if float64 could not distinguish
// them.
func TestNumbersCompareExactly(t *testing.T) {
	const doc = `[9007199254740992,9007199254740993,9007199254740992.0,9223372036854775807,9223372036854775808,-9223372036854775808,-9223372036854775809,0,-0,-0.0,0.1,1e3,1000,18446744073709551615]`
	tests := []struct{ path, want string }{
		{`$[?(@==9007199254740993)]`, `[9007199254740993]`},
		{`$[?(@==9007199254740992)]`, `[9007199254740992,9007199254740992.0]`},
		{`$[?(@==9007199254740992.0)]`, `[9007199254740992,9007199254740992.0]`},
		{`$[?(@>=9223372036854775807)]`, `[9223372036854775807,9223372036854775808,18446744073709551615]`},
		{`$[?(@>9223372036854775807)]`, `[9223372036854775808,18446744073709551615]`},
		{`$[?(@<=-9223372036854775808)]`, `[-9223372036854775808,-9223372036854775809]`},
		{`$[?(@<0.1 && @>-0.5)]`, `[0,-0,-0.0]`},
		{`$[?(@==0)]`, `[0,-0,-0.0]`},
		{`$[?(@==1e3)]`, `[1e3,1000]`},
		{`$[?(@==+1000)]`, `[1e3,1000]`},
	}
	for _, tt := range tests {
		got := evaluate(t, jsonpath.MustCompile(tt.path), []byte(doc))
		if diff := cmp.Diff(list(t, tt.want), got, valueOptions); diff != "" {
			t.Errorf("results of %s (-want +got):\n%s", tt.path, diff)
		}
	}
}

var deviation = regexp.MustCompile("(?m)^\\| `(.+?)` \\| `(.+?)` \\|")

// TestInvalidInRFC9535 verifies that expressions that are accepted although RFC 9535 forbids them are
// documented and evaluated as documented.
func TestInvalidInRFC9535(t *testing.T) {
	docs, err := os.ReadFile("../../docs/jsonpath.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(docs), "These forms are invalid in RFC 9535")
	section, _, _ = strings.Cut(section, "\n## ")
	accepted := map[string]bool{}
	for _, row := range deviation.FindAllStringSubmatch(section, -1) {
		accepted[row[1]] = true
		p, err := jsonpath.Compile(row[1])
		if err != nil || p.String() != row[2] {
			t.Errorf("Compile(%s) = %v, %v; want %s", row[1], p, err, row[2])
		}
	}
	if len(accepted) < 20 {
		t.Fatalf("the documentation has %d rows, want at least 20", len(accepted))
	}
	// expressions that the grammar of RFC 9535 does not allow
	for _, invalid := range []string{
		"", "$.", "$..", "$...a", "$.&", "$.'a'", `$."a"`, "$.[a]", "$a", "$$", "$.$", "$.a.", "$.*a",
		"$..*a", "$.a,b",
		"$[]", "$[,]", "$[0,]", "$[,0]", "$[0 1]", "$[a]", "$['a']['b'", "$['a'", `$["a']`, `$['a'"b"]`,
		"$[$]", "$[@]", "$[*,]",
		"$[01]", "$[-01]", "$[1.0]", "$[1e3]", "$[+1]", "$[- 1]", "$[--1]",
		"$[231584178474632390847141970017375815706539969331281128078915168015826259279872]",
		"$[01:2]", "$[1:02]", "$[1:2:03]", "$[+1:2]", "$[1:+2]", "$[1:2:+1]", "$[1:2:3:4]", "$[:::]",
		"$[- 1:]", "$[1.0:]", "$[a:b]", "$[0:1:-0]",
		`$["\u"]`, `$["\u00"]`, `$["\uD800"]`, `$["\uDC00"]`, `$["\uD800\u0041"]`, `$["\x41"]`, `$["\a"]`,
		"$[\"\t\"]", "$['\n']", "$[\"\x00\"]",
		"$[?]", "$[?()]", "$[?(@.a]", "$[?@.a)]", "$[?true]", "$[?null]", "$[?1]", "$[?'a']",
		"$[?@.a && true]", "$[?!1]", "$[?!@.a==1]",
		"$[?@.a==01]", "$[?@.a==-01]", "$[?@.a==.1]", "$[?@.a==1.]", "$[?@.a==1.e1]", "$[?@.a==1e]",
		"$[?@.a==--1]", "$[?@.a==0x1]", "$[?@.a==True]", "$[?@.a==NULL]",
		"$[?@.a==[1]]", "$[?@.a=={}]", `$[?@.a=={"b":1}]`, "$[?@.a=1]", "$[?@.a===1]", "$[?@.a!==1]",
		"$[?@.a<>1]", "$[?@.a=<1]", "$[?@.a==1==2]", "$[?@.a==@.b==@.c]", "$[?(@.a)==1]",
		"$[?@.a and @.b]", "$[?@.a AND @.b]", "$[?@.a & @.b]", "$[?@.a | @.b]", "$[?@.a &&]", "$[?|| @.a]",
		"$[?not @.a]", "$[?@.a==1 @.b]", "$[?@.a,@.b==1,]",
		"$[?@[*]==0]", "$[?@..a==0]", "$[?@['a','b']==0]", "$[?@[0:1]==0]", "$[?@[?@.a]==0]", "$[?@.*==0]",
		"$[(@.length-1)]", "$.a.length()", "$[?length(@.a)]", "$[?count(@.*)]", "$[?match(@.a)]",
	} {
		if p, err := jsonpath.Compile(invalid); err == nil && !accepted[invalid] {
			t.Errorf("Compile(%s) = %s, want an error or a row in the documentation", invalid, p)
		}
	}
	for _, valid := range []string{"$[::0]", "$[?@.a==1e400]", "$[?length(@.a)>1]", "$[?@.a==$.b]"} {
		if p, err := jsonpath.Compile(valid); err == nil {
			t.Errorf("Compile(%s) = %s, want an error", valid, p)
		}
	}
}

// nested returns a document of n levels.
func nested(open, middle, end string, n int) []byte {
	return []byte(strings.Repeat(open, n) + middle + strings.Repeat(end, n))
}

func TestDocumentDepth(t *testing.T) {
	tests := []struct {
		reason string
		doc    []byte
		ok     bool
	}{
		{"lists at the limit", nested("[", "", "]", 10000), true},
		{"lists beyond it", nested("[", "", "]", 10001), false},
		{"maps at the limit", nested(`{"a":`, "1", "}", 10000), true},
		{"maps beyond it", nested(`{"a":`, "1", "}", 10001), false},
		{"an attack", bytes.Repeat([]byte("["), 5_000_000), false},
		{"an attack on maps", bytes.Repeat([]byte(`{"a":`), 1_000_000), false},
	}
	exprs := []string{"$", ".a", "..a", "$..*", "$[?(@..a)]", "[0][0]"}
	for _, tt := range tests {
		for _, expr := range exprs {
			if expr == "$..*" && len(tt.doc) > 1_000_000 {
				continue
			}
			err := jsonpath.MustCompile(expr).FindJSON(tt.doc, func(jsonpath.Value) bool { return true })
			if (err == nil) != tt.ok {
				t.Errorf("%s, %s: error %v, want success: %v", tt.reason, expr, err, tt.ok)
			}
			var s *jsontext.SyntaxError
			if err != nil && (!errors.As(err, &s) || s.Reason != "exceeded max depth") {
				t.Errorf("%s, %s: error %v, want \"exceeded max depth\"", tt.reason, expr, err)
			}
		}
	}
}

// count returns the number of results, and fails the test if the evaluators have different numbers.
func count(t *testing.T, p *jsonpath.Path, doc []byte) int {
	t.Helper()
	var obj any
	if err := json.Unmarshal(doc, &obj); err != nil {
		t.Fatal(err)
	}
	values, err := p.AppendJSON(nil, doc)
	if decoded := p.Append(nil, obj); err != nil || len(decoded) != len(values) {
		t.Fatalf("AppendJSON returned %d values, %v; Append returned %d", len(values), err, len(decoded))
	}
	return len(values)
}

// TestOverwrittenDocument verifies that reading values of an overwritten document does not panic.
func TestOverwrittenDocument(t *testing.T) {
	for _, text := range []string{`"a\u0041\ud83d\ude00é"`, `[1,"x",{"y":[2]}]`, `-12.5e3`,
		`1234567890123456789012`, `true`, `null`, `"\ud83d"`} {
		for _, c := range []byte("\\u\xff\"[]{}0-.e\x00") {
			doc := []byte(text)
			v, ok, err := jsonpath.MustCompile("$").FirstJSON(doc)
			if !ok || err != nil {
				t.Fatalf("FirstJSON(%q) = %v, %v", text, ok, err)
			}
			for i := range doc {
				doc[i] = c
				v.Any()
				_ = v.String()
				v.Text()
			}
		}
	}
}

// TestRepeatedUnions verifies that a chain of n unions of two keys, which has 2^n paths, is compiled and
// evaluated without following each path.
func TestRepeatedUnions(t *testing.T) {
	p := jsonpath.MustCompile(strings.Repeat("['a','b']", 1000))
	doc := []byte(`{"a":{"b":{"a":1}},"b":{"c":2}}`)
	if got := evaluate(t, p, doc); len(got) != 0 {
		t.Errorf("found %v, want no results", got)
	}
	if n := count(t, p, nested(`{"a":`, "1", "}", 1000)); n != 1 {
		t.Errorf("found %d values, want 1", n)
	}
	q := jsonpath.MustCompile(strings.Repeat("['a','b']", 14))
	if n := count(t, q, nested(`{"b":2,"a":`, "1", "}", 14)); n != 2 {
		t.Errorf("found %d values, want 2", n)
	}
}
