package jsonpath_test

import (
	"bytes"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// valueOptions treat empty and nil lists as equal.
var valueOptions = cmpopts.EquateEmpty()

// difference describes how two lists of results differ, or returns "". It calls the slow go-cmp only for
// different lists.
func difference(want, got []any) string {
	if len(want) == 0 && len(got) == 0 || reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got, valueOptions)
}

// evaluate evaluates a path with each evaluator, fails the test if the results differ, and returns them. The
// document must be valid.
func evaluate(t testing.TB, p *jsonpath.Path, doc []byte) []any {
	t.Helper()
	var obj any
	if err := json.Unmarshal(doc, &obj); err != nil {
		t.Fatalf("the test's document is invalid: %v\n%s", err, doc)
	}
	want := p.Append(nil, obj)
	if p.Singular() && len(want) > 1 {
		t.Errorf("%s is singular and has %d results, want at most 1", p, len(want))
	}

	before := bytes.Clone(doc)
	var fromJSON []any
	if err := p.FindJSON(doc, func(v jsonpath.Value) bool {
		fromJSON = append(fromJSON, v.Any())
		return true
	}); err != nil {
		t.Fatalf("FindJSON(%s): %v\n%s", p, err, doc)
	}
	if !bytes.Equal(before, doc) {
		t.Fatalf("FindJSON(%s) changed the document", p)
	}
	if diff := difference(want, fromJSON); diff != "" {
		t.Errorf("results of %s on %s (-decoded +raw):\n%s", p, doc, diff)
	}

	// other expressions in a set do not change the results
	for _, neighbour := range []*jsonpath.Path{jsonpath.FromSegments("nowhere"),
		jsonpath.MustCompile("$..*")} {
		set := jsonpath.NewSet(neighbour, p, jsonpath.MustCompile("$[*].a"), p)
		found := map[int][]any{}
		if err := set.FindJSON(doc, func(i int, v jsonpath.Value) bool {
			found[i] = append(found[i], v.Any())
			return true
		}); err != nil {
			t.Fatalf("Set.FindJSON(%s): %v", p, err)
		}
		for _, i := range []int{1, 3} {
			if diff := difference(want, found[i]); diff != "" {
				t.Errorf("results of %s on %s (-alone +in a set):\n%s", p, doc, diff)
			}
		}
	}

	first, ok := p.First(obj)
	if ok != (len(want) > 0) || ok && !reflect.DeepEqual(want[0], first) {
		t.Errorf("First(%s) = %v, %t; want the first of %v", p, first, ok, want)
	}
	return want
}

// list decodes a JSON array of expected results.
func list(t testing.TB, text string) []any {
	t.Helper()
	var l []any
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		t.Fatalf("the test's expected result is invalid: %v: %s", err, text)
	}
	return l
}

func TestPaths(t *testing.T) {
	const issuer = `{"apiVersion":"v1","spec":{"issuerRef":{"name":"ca","kind":"Issuer"},"dnsNames":["a.example","b.example","c.example"],"replicas":3,"weight":0.5,"paused":false,"none":null,"empty":"","noNames":[]},
		"metadata":{"labels":{"b":"2","a":"1","example.io/team":"x"}},
		"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Issuing","status":"False"}]}}`
	tests := []struct {
		reason, path, doc, want string
	}{
		{"leading dot", ".spec.issuerRef.name", issuer, `["ca"]`},
		{"no dot", "spec.issuerRef.name", issuer, `["ca"]`},
		{"braces", "{.spec.issuerRef.name}", issuer, `["ca"]`},
		{"blanks in and around braces", "  { .spec.issuerRef.name }\n", issuer, `["ca"]`},
		{"dollar", "$.spec.issuerRef.name", issuer, `["ca"]`},
		{"a key called range", "range.x", `{"range":{"x":1}}`, `[1]`},
		{"the whole object", "$", `{"a":1}`, `[{"a":1}]`},
		{"escaped dots", `.metadata.labels.example\.io/team`, issuer, `["x"]`},
		{"all elements", ".spec.dnsNames[*]", issuer, `["a.example","b.example","c.example"]`},
		{"all elements of an empty list", ".spec.noNames[*]", issuer, `[]`},
		{"index of a string", ".apiVersion[0]", issuer, `[]`},
		{"key of a list", ".spec.dnsNames.x", issuer, `[]`},
		{"a missing key", ".spec.missing", issuer, `[]`},
		{"below a missing key", ".spec.missing.x", issuer, `[]`},
		{"an empty string is a value", ".spec.empty", issuer, `[""]`},
		{"union with a missing key", ".metadata.labels['zz','a']", issuer, `["1"]`},
		{"union of all kinds", ".spec.dnsNames[0, -1:, ?(@=='b.example'), *]", issuer,
			`["a.example","c.example","b.example","a.example","b.example","c.example"]`},
		{"filter", `.status.conditions[?(@.type=="Ready")].status`, issuer, `["True"]`},
		{"filter with blanks", ".status.conditions[ ? ( @.type == 'Ready' ) ] .status", issuer, `["True"]`},
		{"filter after a filter", `.status.conditions[?(@.type)][?(@=="True")]`, issuer, `["True"]`},
		{"recursion with a filter", "..[?(@.a)]", `[{"a":1,"b":[{"a":2}]}]`,
			`[{"a":1,"b":[{"a":2}]},{"a":2}]`},
		{"recursion in each of two filters", "[?(@..b)][?(@..c)]", `{"a":{"x":{"b":{"c":1}}}}`,
			`[{"b":{"c":1}}]`},
		{"a digit is a key", ".a.0", `{"a":{"0":"x"}}`, `["x"]`},
		{"an empty key", `$[""]['']`, `{"":{"":1}}`, `[1]`},
		{"names beyond ASCII", ".größe.名", `{"größe":{"名":1}}`, `[1]`},
		{"punctuation in names", `.a-b/c:d_e+f~g#h%i^j`, `{"a-b/c:d_e+f~g#h%i^j":1}`, `[1]`},
		{"escapes in quotes", `$["\u0061\n\"\\\/\ud83d\ude00"]`, `{"a\n\"\\/😀":1}`, `[1]`},
		{"quoted keys with a dot or a wildcard", `$['*','c','a.b']`, `{"a":{"b":1},"a.b":2,"c":3}`, `[3,2]`},
		{"escapes in names", `.a\ b\*\$\\\é`, `{"a b*$\\é":1}`, `[1]`},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			got := evaluate(t, jsonpath.MustCompile(tt.path), []byte(tt.doc))
			if diff := cmp.Diff(list(t, tt.want), got, valueOptions); diff != "" {
				t.Errorf("results of %s (-want +got):\n%s", tt.path, diff)
			}
		})
	}
}

func TestFromSegments(t *testing.T) {
	tests := []struct {
		keys []string
		text string
	}{
		{nil, `$`},
		{[]string{"spec", "issuerRef", "name"}, `.spec.issuerRef.name`},
		{[]string{"metadata", "labels", "example.io/team"}, `.metadata.labels.example\.io/team`},
		{[]string{"*", "0"}, `$["*"].0`},
		{[]string{"a b", "c'd"}, `$["a b"]["c'd"]`},
		{[]string{""}, `$[""]`},
		{[]string{"a", `\"` + "\n\x7f"}, `.a["\\\"\u000a\u007f"]`},
		{[]string{"b\xffc"}, ".b\ufffdc"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			p := jsonpath.FromSegments(tt.keys...)
			if p.String() != tt.text || p.Expr() != tt.text {
				t.Errorf("String() = %s, Expr() = %s, want %s", p, p.Expr(), tt.text)
			}
			if len(p.Warnings()) > 0 {
				t.Errorf("Warnings() = %v, want none", p.Warnings())
			}
			checkRoundTrip(t, p)
			var inner any = "found"
			for i := len(tt.keys) - 1; i >= 0; i-- {
				inner = map[string]any{tt.keys[i]: inner}
			}
			doc, err := json.Marshal(inner)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]any{"found"}, evaluate(t, p, doc)); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStopAndReenter verifies that a callback can stop the evaluation at any value and can start others.
func TestStopAndReenter(t *testing.T) {
	doc := []byte(`{"a":[{"x":1,"y":[1,2]},{"x":2,"y":[3]}],"b":{"x":3},"c":[]}`)
	obj := decoded(t, string(doc))
	for _, expr := range []string{"..x", "$.*", ".a[*].y[*]", ".a[::-1]", ".a[?(@.y[*])].x", "..*",
		"$['a','b']", ".a[?(@.y[?(@>1)])]..*"} {
		p := jsonpath.MustCompile(expr)
		all := p.Append(nil, obj)
		for n := 1; n <= len(all); n++ {
			var got, raw []any
			p.Find(obj, func(v any) bool {
				p.Append(nil, obj)
				got = append(got, v)
				return len(got) < n
			})
			err := p.FindJSON(doc, func(v jsonpath.Value) bool {
				if _, _, err := p.FirstJSON([]byte(`{"a":[{"x":1,"y":[1,2]},9]}`)); err != nil {
					t.Errorf("FirstJSON in a callback: %v", err)
				}
				raw = append(raw, v.Any())
				return len(raw) < n
			})
			if err != nil {
				t.Fatal(err)
			}
			if cmp.Diff(all[:n], got) != "" || cmp.Diff(all[:n], raw) != "" {
				t.Errorf("%s: the first %d results of %v are %v decoded and %v raw", expr, n, all, got, raw)
			}
		}
	}
}

// TestCallbackPanics verifies that the package stays usable after a panic in a callback.
func TestCallbackPanics(t *testing.T) {
	obj := decoded(t, `{"b":{"x":1},"a":{"x":2}}`)
	p := jsonpath.MustCompile("$.*.x")
	func() {
		defer func() { _ = recover() }()
		p.Find(obj, func(any) bool { panic("out") })
	}()
	if diff := cmp.Diff([]any{int64(2), int64(1)}, p.Append(nil, obj)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

// TestForeignGoValues verifies that Go values that JSON does not have can be results, but have no members.
func TestForeignGoValues(t *testing.T) {
	type foreign struct{ X int }
	obj := map[string]any{
		"s": foreign{1}, "strings": []string{"a"}, "labels": map[string]string{"a": "b"}, "n": 7,
		"nilMap": map[string]any(nil),
	}
	tests := []struct {
		path string
		want []any
	}{
		{".s", []any{foreign{1}}},
		{".s.X", nil},
		{".strings[0]", nil},
		{".strings[*]", nil},
		{".labels.a", nil},
		{".labels.*", nil},
		{".nilMap.x", nil},
		{".nilMap.*", nil},
		{"$[?(@==7)]", []any{7}},
		{"$[?(@.X==1)]", nil},
		{"$..X", nil},
	}
	for _, tt := range tests {
		got := jsonpath.MustCompile(tt.path).Append(nil, obj)
		if diff := cmp.Diff(tt.want, got, valueOptions); diff != "" {
			t.Errorf("results of %s (-want +got):\n%s", tt.path, diff)
		}
	}
	if !jsonpath.MustCompileFilter("@.s != @.s").Match(obj) {
		t.Error("@.s != @.s = false for a value that JSON does not have, want true")
	}
}

func TestCyclicMapEnds(t *testing.T) {
	m := map[string]any{"x": "y"}
	m["self"] = m
	if n := len(jsonpath.MustCompile("..x").Append(nil, m)); n == 0 {
		t.Error("..x of a cyclic map has no results, want some")
	}
}

const certificate = `{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"annotations":{"example.io/owner":"payments","example.io/ticket":"OPS-4711"},"creationTimestamp":"2026-03-04T10:11:12Z","generation":3,"labels":{"app.kubernetes.io/name":"checkout","app.kubernetes.io/part-of":"edge","example.io/team":"payments"},"managedFields":[{"apiVersion":"cert-manager.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:example.io/owner":{},"f:example.io/ticket":{}},"f:labels":{".":{},"f:app.kubernetes.io/name":{},"f:app.kubernetes.io/part-of":{},"f:example.io/team":{}}},"f:spec":{".":{},"f:dnsNames":{},"f:duration":{},"f:issuerRef":{".":{},"f:group":{},"f:kind":{},"f:name":{}},"f:renewBefore":{},"f:secretName":{}}},"manager":"kubectl-client-side-apply","operation":"Update","time":"2026-03-04T10:11:12Z"},{"apiVersion":"cert-manager.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{".":{},"f:conditions":{".":{},"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:observedGeneration":{},"f:reason":{},"f:status":{},"f:type":{}}},"f:notAfter":{},"f:notBefore":{},"f:renewalTime":{},"f:revision":{}}},"manager":"cert-manager-certificates-readiness","operation":"Update","subresource":"status","time":"2026-03-04T10:12:00Z"}],"name":"checkout-tls","namespace":"prod","resourceVersion":"918273645","uid":"0c6f3f1e-6a55-4c1b-9d0e-5f1a2b3c4d5e"},"spec":{"dnsNames":["checkout.example.com","pay.example.com","www.pay.example.com"],"duration":"2160h0m0s","issuerRef":{"group":"cert-manager.io","kind":"ClusterIssuer","name":"letsencrypt-prod"},"renewBefore":"360h0m0s","secretName":"checkout-tls"},"status":{"conditions":[{"lastTransitionTime":"2026-03-04T10:11:15Z","message":"Issuing certificate as Secret does not exist","reason":"DoesNotExist","status":"False","type":"Issuing"},{"lastTransitionTime":"2026-03-04T10:12:00Z","message":"Certificate is up to date and has not expired","observedGeneration":3,"reason":"Ready","status":"True","type":"Ready"}],"notAfter":"2026-06-02T10:11:59Z","notBefore":"2026-03-04T10:12:00Z","renewalTime":"2026-05-18T10:11:59Z","revision":1}}`

func decoded(tb testing.TB, raw string) map[string]any {
	tb.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(raw), &m); err != nil {
		tb.Fatal(err)
	}
	return m
}

const (
	fieldPath  = ".spec.issuerRef.name"
	filterPath = `.status.conditions[?(@.type=="Ready")].status`
	listPath   = ".spec.dnsNames[*]"
)

var eightPaths = []string{
	".metadata.namespace", ".metadata.name", fieldPath, listPath, ".status.notAfter",
	`.metadata.labels.example\.io/team`, ".spec.secretName", filterPath,
}

// TestCodesAreDocumented verifies that every code is documented, and every error code is in the golden file.
func TestCodesAreDocumented(t *testing.T) {
	read := func(file string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	docs, errorTexts := read("../../docs/jsonpath.md"), read("testdata/errors.golden")
	codes := regexp.MustCompile(`= "([EW]\d+)"`).FindAllStringSubmatch(read("diagnostic.go"), -1)
	if len(codes) < 20 {
		t.Fatalf("diagnostic.go has %d codes, want at least 20", len(codes))
	}
	for _, c := range codes {
		if !strings.Contains(docs, "| "+c[1]+" |") {
			t.Errorf("docs/jsonpath.md does not document %s", c[1])
		}
		if strings.HasPrefix(c[1], "E") && !strings.Contains(errorTexts, ": "+c[1]+": ") {
			t.Errorf("errors.golden has no error with the code %s", c[1])
		}
	}
}

// TestDocumentedExamples verifies that the examples in the first table of the documentation are correct.
func TestDocumentedExamples(t *testing.T) {
	b, err := os.ReadFile("../../docs/jsonpath.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "```json\n")
	doc, rest, _ := strings.Cut(rest, "```")
	table, _, _ := strings.Cut(rest, "\n## ")
	rows := regexp.MustCompile("(?m)^\\| `(.+?)` \\| `(.+?)` \\|").FindAllStringSubmatch(table, -1)
	if len(rows) < 20 {
		t.Fatalf("the documentation has %d examples, want at least 20", len(rows))
	}
	for _, row := range rows {
		p, err := jsonpath.Compile(row[1])
		if err != nil {
			t.Errorf("Compile(%s): %v", row[1], err)
			continue
		}
		if diff := difference(list(t, row[2]), evaluate(t, p, []byte(doc))); diff != "" {
			t.Errorf("results of %s (-documented +got):\n%s", row[1], diff)
		}
	}
}
