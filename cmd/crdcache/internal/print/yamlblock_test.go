package print

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	goyaml "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// compareYAML compares the YAML of an object in JSON with the YAML library's. It reports whether
// appendYAMLItem wrote it without the library.
func compareYAML(t *testing.T, raw []byte) bool {
	t.Helper()
	var decoded map[string]any
	if err := utiljson.Unmarshal(raw, &decoded); err != nil || decoded == nil {
		return false // only valid objects are supported
	}
	before := []byte("apiVersion: v1\nitems:\n")
	got, ok := appendYAMLItem(before, decoded, quoteCache{})
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

// FuzzYAMLItems compares the YAML of objects with the YAML library's.
func FuzzYAMLItems(f *testing.F) {
	for _, document := range unusualDocuments {
		f.Add([]byte(document))
	}
	add := func(object *unstructured.Unstructured) {
		raw, err := json.Marshal(object.Object)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	for seed := range uint64(300) {
		add(randomObject(rand.New(rand.NewPCG(seed, 3)), "some text: on its way"))
	}
	for _, value := range specialValues {
		add(newThing("a", map[string]any{"value": value, "list": []any{value, value, []any{value}}}))
	}
	add(certificate())
	f.Fuzz(func(t *testing.T, raw []byte) { compareYAML(t, raw) })
}

func BenchmarkYAMLItem(b *testing.B) {
	raw, err := json.Marshal(certificate().Object)
	must(b, err)
	b.Run("item", func(b *testing.B) {
		b.ReportAllocs()
		var out []byte
		known := quoteCache{}
		for b.Loop() {
			object, err := Object{JSON: raw}.decode()
			if err != nil {
				b.Fatal(err)
			}
			out, _ = appendYAMLItem(out[:0], object.Object, known)
		}
	})
	b.Run("library", func(b *testing.B) {
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

// TestMarshalYAMLAnyCharacter verifies that each character can be read back from YAML, in keys and values.
func TestMarshalYAMLAnyCharacter(t *testing.T) {
	all := map[string]any{"": "\x7f"} // yaml.Marshal fails for it
	for r := rune(0); r < 0x10000; r++ {
		if r >= 0x300 && r < 0x2000 || r >= 0x3000 && r < 0xe000 { // letters, and unassigned characters
			continue
		}
		all[fmt.Sprintf("%04x", r)] = map[string]any{"k" + string(r) + "k": "v" + string(r) + "v"}
	}
	text, err := MarshalYAML(all)
	must(t, err)
	var back map[string]any
	must(t, yaml.Unmarshal(text, &back))
	if diff := cmp.Diff(all, back); diff != "" {
		t.Errorf("text after encoding and decoding (-want +got):\n%s", diff)
	}
}

// TestYAMLLongKey verifies that keys that are too long for the YAML library's conversion from JSON are
// printed.
func TestYAMLLongKey(t *testing.T) {
	object := map[string]any{"data": map[string]any{strings.Repeat("k", 2000): int64(1 << 60)}, "kind": "A"}
	text, err := MarshalYAML(object)
	must(t, err)
	var back map[string]any
	must(t, goyaml.Unmarshal(text, &back))
	if got := fmt.Sprint(back["data"]); !strings.HasSuffix(got, ":1152921504606846976]") || len(got) < 2000 {
		t.Errorf("the decoded object is %s, want the long key with its exact number", got)
	}
}
