package jsonpath_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/jsontext"
)

// FuzzCompile compiles arbitrary text. It must not panic, errors must have a valid position, the canonical
// form must be equivalent, and both evaluators must agree.
func FuzzCompile(f *testing.F) {
	for _, exprs := range [][]string{badPaths, badFilters, eightPaths} {
		for _, expr := range exprs {
			f.Add(expr)
		}
	}
	for seed := range uint64(50) {
		r := newRandom(seed, false)
		f.Add(r.path(3))
		f.Add(r.condition(3))
	}
	doc := []byte(`{"a":[{"b":1,"c":"x"},{"b":2.5,"c":null}],"b":{"a":{"b":[1,2,3]},"a.b":true},"":0}`)
	f.Fuzz(func(t *testing.T, expr string) {
		p, err := jsonpath.Compile(expr)
		checkError(t, expr, err)
		if err == nil {
			checkRoundTrip(t, p)
			evaluate(t, p, doc)
		}
		filter, err := jsonpath.CompileFilter(expr)
		checkError(t, expr, err)
		if err == nil {
			matchesAgree(t, filter, doc)
		}
	})
}

// checkError fails the test if an error is not an *Error with a position in the expression.
func checkError(t *testing.T, expr string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var e *jsonpath.Error
	if !errors.As(err, &e) {
		t.Fatalf("%q: error %v, want an Error", expr, err)
	}
	if e.Expr != expr || e.Offset < 0 || e.Length < 0 || e.Offset+e.Length > len(expr) || e.Code == "" ||
		e.Message == "" {
		t.Fatalf("%q: invalid diagnostic %+v", expr, e.Diagnostic)
	}
	if lines := strings.Split(e.Caret(), "\n"); len(lines) != 2 || !strings.Contains(lines[1], "^") {
		t.Fatalf("%q: Caret() = %q, want two lines with a ^", expr, lines)
	}
}

// jsonDocuments has valid and invalid documents.
var jsonDocuments = []string{
	``, ` `, `null`, ` true `, `tru`, `truex`, `nul`, `false,`, `{}`, `[]`, `{`, `[`, `}`, `]`, `{]`, `[}`,
	`{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":1 "b":2}`, `{a:1}`, `{1:1}`, `{"a":1}}`, `[1,]`, `[,1]`,
	`[1 2]`, `[1]]`, "[1]\x00", "\ufeff{}",
	`0`, `-0`, `00`, `01`, `-`, `-a`, `+1`, `1.`, `.1`, `1.0`, `1e`, `1e+`, `1e+5`, `1E-5`, `1e5.5`, `0e0`,
	`-0.0`, `9223372036854775807`, `9223372036854775808`, `-9223372036854775808`, `-9223372036854775809`,
	`1e308`, `1e309`, `-1e999`, `1e-999`, `[1e999]`, `{"a":{"b":-1e400}}`, `0x1`, `1_000`, `Infinity`, `NaN`,
	`"`, `"a`, `"a\"`, `"\`, `"\u`, `"\u12"`, `"\u123g"`, `"\u00e9"`, `"\ud83d\ude00"`, `"\ud83d"`,
	`"\ud83d\u0041"`, `"\ude00\ud83d"`, `"\ud83d\ud83d\ude00"`, `"\x"`, `"\'"`, `"\/\b\f\n\r\t\\\""`,
	"\"a\nb\"", "\"\x7f\"", "\"\xff\"", "\"a\xc3\"", "\"\xed\xa0\x80\"", "\"é\xe9\"", "\"12345678\x1f\"",
	"\"1234567\\\"8\"", `"12345678\"9"`,
	`{"a":1,"a":2}`, `{"a":{"x":1},"a":{"y":2}}`, `{"a":1,"\u0061":2}`, `{"a":2,"b":[{"a":1,"a":null}]}`,
	"{\"\xff\":1,\"\xfe\":2,\"\ufffd\":3}", `{"\ud800":1,"�":2}`, `{"":1,"":2}`,
	` { "a" : [ 1 , { "b" : null } , [ ] , { } ] } `, "\t\r\n[\v]", certificate,
}

// sameJSON verifies that the scanner accepts a document exactly if sigs.k8s.io/json accepts it, and decodes
// the same values, for paths that select everything or nothing.
func sameJSON(t *testing.T, doc []byte) {
	t.Helper()
	var want any
	wantErr := json.Unmarshal(doc, &want)
	v, ok, err := jsonpath.MustCompile("$").FirstJSON(doc)
	if (err == nil) != (wantErr == nil) || ok != (wantErr == nil) {
		t.Fatalf("FirstJSON(%q): got the error %v, sigs.k8s.io/json has %v", doc, err, wantErr)
	}
	var s *jsontext.SyntaxError
	if err != nil && (!errors.As(err, &s) || s.Offset < 0 || s.Offset > len(doc)) {
		t.Fatalf("%q: error %v, want a syntax error with a valid offset", doc, err)
	}
	for _, expr := range []string{"$..*", ".nowhere", "$[*].a", "$[?(@.a)]", "['a','b']"} {
		p := jsonpath.MustCompile(expr)
		if err != nil {
			got, pathErr := p.AppendJSON(nil, doc)
			if pathErr == nil || len(got) > 0 {
				t.Fatalf("%s of the invalid %q = %v, %v; want only an error", p, doc, got, pathErr)
			}
			continue
		}
		evaluate(t, p, doc)
	}
	if err != nil {
		return
	}
	if diff := cmp.Diff(want, v.Any()); diff != "" {
		t.Fatalf("%q (-sigs.k8s.io/json +ours):\n%s", doc, diff)
	}
	if text, isString := want.(string); isString {
		if got, _ := v.Text(); string(got) != text || v.String() != text {
			t.Fatalf("%q: Text() = %q, want %q", doc, got, text)
		}
	}
}

// TestJSONAsSigsReadsIt verifies that JSON is accepted and decoded as by sigs.k8s.io/json. FuzzJSON has more
// documents.
func TestJSONAsSigsReadsIt(t *testing.T) {
	// truncate the document everywhere, and change each byte
	for i := range certificate {
		sameJSON(t, []byte(certificate[:i]))
	}
	for i := 0; i < len(certificate); i += 7 {
		doc := []byte(certificate)
		doc[i] = "\"\\{}[],:0 \xff\x01x"[i%14]
		sameJSON(t, doc)
	}
}

func FuzzJSON(f *testing.F) {
	for _, doc := range jsonDocuments {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		if len(doc) > 1<<10 { // ..* takes quadratic time for a deep document
			return
		}
		sameJSON(t, doc)
	})
}
