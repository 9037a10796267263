package print

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// checkIndented compares with decoding and json.MarshalIndent. With fast, AppendIndented must not need
// decoding.
func checkIndented(t *testing.T, raw []byte, fast bool) {
	t.Helper()
	var decoded map[string]any
	if err := utiljson.Unmarshal(raw, &decoded); err != nil {
		return // only valid objects are supported
	}
	got, ok := jsontext.AppendIndented([]byte("kept"), raw, jsonInset, jsonStep)
	if !ok {
		if fast {
			t.Errorf("%q has to be decoded", raw)
		}
		if string(got) != "kept" {
			t.Errorf("%q: dst is %q after a refusal", raw, got)
		}
		return
	}
	want, err := json.MarshalIndent(decoded, jsonInset, jsonStep)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != "kept"+string(want) {
		t.Errorf("%q is written\n%s\nwant\n%s", raw, got, want)
	}
}

func TestIndented(t *testing.T) {
	for _, value := range awkward {
		raw, err := json.Marshal(thing("a", value).Object)
		if err != nil {
			t.Fatal(err)
		}
		checkIndented(t, raw, true)
	}
	for seed := range uint64(200) {
		raw, err := json.Marshal(generated(rand.New(rand.NewPCG(seed, 2)), "some <text> 日本").Object)
		if err != nil {
			t.Fatal(err)
		}
		// Replacing invalid UTF-8 in keys can change their order.
		checkIndented(t, raw, !bytes.Contains(raw, []byte(`\ufffd`)))
	}
}

// oddDocuments are valid, but not as API servers write them.
var oddDocuments = []string{
	`{}`, ` { "a" : [ ] , "b" : { } } `,
	"{\"a\":[1,2.0,-0,1e3,1E+2,0.1e-7,12345678901234567890,-9223372036854775808,9223372036854775807,1e400]}",
	`{"b":1,"a":2}`, `{"a":1,"a":2}`, `{"a\u0062":1,"ab":2}`, `{"a":"\u003c\/\ud83d\ude00\ud83d"}`,
	`{"\u0000":null,"\u0001":true}`,
	"{\"a\":\"\xff\u2028\x7f\"}", `{"a":{"":{"":[[],[{}],[[[]]]]}}}`, `{"A":1,"a":2}`, `{"é":1,"z":2}`,
	`{"z":1,"é":"è"}`, `{"\\":1,"]":2,"\"":3}`,
}

func FuzzIndented(f *testing.F) {
	for _, document := range oddDocuments {
		f.Add([]byte(document))
	}
	f.Fuzz(func(t *testing.T, raw []byte) { checkIndented(t, raw, false) })
}

func BenchmarkIndented(b *testing.B) {
	raw, err := json.Marshal(certificate().Object)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("raw", func(b *testing.B) {
		b.ReportAllocs()
		var out []byte
		for b.Loop() {
			out, _ = jsontext.AppendIndented(out[:0], raw, jsonInset, jsonStep)
		}
	})
	b.Run("decoded", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON(raw); err != nil {
				b.Fatal(err)
			}
			if _, err := json.MarshalIndent(u.Object, jsonInset, jsonStep); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// certificate is an object of typical size.
func certificate() *unstructured.Unstructured {
	u := thing("web-frontend-0042", map[string]any{
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
