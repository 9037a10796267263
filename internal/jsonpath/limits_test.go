package jsonpath_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

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
			var s *jsonpath.SyntaxError
			if err != nil && (!errors.As(err, &s) || s.Message != "exceeded max depth") {
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
