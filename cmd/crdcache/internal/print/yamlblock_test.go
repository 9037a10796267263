package print

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// compareYAML compares the YAML of an object in JSON with the YAML library's. It reports whether
// appendYAMLItem wrote it without decoding the object.
func compareYAML(t *testing.T, raw []byte) bool {
	t.Helper()
	var decoded map[string]any
	if err := utiljson.Unmarshal(raw, &decoded); err != nil || decoded == nil {
		return false // only valid objects are supported
	}
	before := []byte("apiVersion: v1\nitems:\n")
	got, ok := appendYAMLItem(before, raw, quoteCache{})
	if !ok {
		if !bytes.Equal(got, before) {
			t.Errorf("%q: the rejection changed dst to %q", raw, got)
		}
		return false
	}
	want, err := yaml.Marshal([]any{decoded})
	if err != nil {
		t.Errorf("%q was written, but the library rejects it: %v", raw, err)
		return true
	}
	if string(got) != string(before)+string(want) {
		t.Errorf("%q is written\n%s\nwant\n%s", raw, got, want)
	}
	return true
}

func TestYAMLItems(t *testing.T) {
	for _, value := range specialValues {
		raw, err := json.Marshal(newThing("a",
			map[string]any{"value": value, "list": []any{value, value, []any{value}}}).Object)
		if err != nil {
			t.Fatal(err)
		}
		compareYAML(t, raw)
	}
	for seed := range uint64(300) {
		raw, err := json.Marshal(randomObject(rand.New(rand.NewPCG(seed, 3)), "some text: on its way").Object)
		if err != nil {
			t.Fatal(err)
		}
		compareYAML(t, raw)
	}
	for _, document := range unusualDocuments {
		compareYAML(t, []byte(document))
	}
}

func FuzzYAMLItems(f *testing.F) {
	for _, document := range unusualDocuments {
		f.Add([]byte(document))
	}
	for seed := range uint64(20) {
		raw, err := json.Marshal(randomObject(rand.New(rand.NewPCG(seed, 3)), "some text: on its way").Object)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	raw, err := json.Marshal(certificate().Object)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) { compareYAML(t, raw) })
}

func BenchmarkYAMLItem(b *testing.B) {
	raw, err := json.Marshal(certificate().Object)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("raw", func(b *testing.B) {
		b.ReportAllocs()
		var out []byte
		known := quoteCache{}
		for b.Loop() {
			out, _ = appendYAMLItem(out[:0], raw, known)
		}
	})
	b.Run("decoded", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var object map[string]any
			if err := utiljson.Unmarshal(raw, &object); err != nil {
				b.Fatal(err)
			}
			if _, err := yaml.Marshal([]any{object}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// unusualDocuments are valid, but not as API servers write them.
var unusualDocuments = []string{
	`{}`, ` { "a" : [ ] , "b" : { } } `,
	"{\"a\":[1,2.0,-0,1e3,1E+2,0.1e-7,12345678901234567890,-9223372036854775808,9223372036854775807,1e400]}",
	`{"b":1,"a":2}`, `{"a":1,"a":2}`, `{"a\u0062":1,"ab":2}`, `{"a":"\u003c\/\ud83d\ude00\ud83d"}`,
	`{"\u0000":null,"\u0001":true}`,
	"{\"a\":\"\xff\u2028\x7f\"}", `{"a":{"":{"":[[],[{}],[[[]]]]}}}`, `{"A":1,"a":2}`, `{"é":1,"z":2}`,
	`{"z":1,"é":"è"}`, `{"\\":1,"]":2,"\"":3}`,
}

// certificate is an object of typical size.
func certificate() *unstructured.Unstructured {
	u := newThing("web-frontend-0042", map[string]any{
		"secretName": "web-frontend-tls", "dnsNames": []any{"a.example.com", "b.example.com",
			"c.example.com"},
		"issuerRef": map[string]any{"name": "letsencrypt", "kind": "ClusterIssuer",
			"group": "cert-manager.io"}, "duration": "2160h0m0s",
		"usages": []any{"server auth", "client auth"}, "revisionHistoryLimit": int64(3),
	})
	u.SetLabels(map[string]string{"app.kubernetes.io/name": "web", "app.kubernetes.io/part-of": "edge",
		"example.io/team": "payments"})
	u.Object["status"] = map[string]any{
		"notAfter": "2026-03-01T10:00:00Z", "notBefore": "2025-12-01T10:00:00Z",
		"renewalTime": "2026-02-01T10:00:00Z", "revision": int64(7),
		"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Ready",
			"observedGeneration": int64(2),
			"lastTransitionTime": "2025-12-01T10:00:05Z",
			"message":            "Certificate is up to date and has not expired"}},
	}
	return u
}
