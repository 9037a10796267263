package print

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// checkYAML compares with decoding and the library, and reports whether decoding was avoided.
func checkYAML(t *testing.T, raw []byte) bool {
	t.Helper()
	var decoded map[string]any
	if err := utiljson.Unmarshal(raw, &decoded); err != nil || decoded == nil {
		return false // only valid objects are supported
	}
	before := []byte("apiVersion: v1\nitems:\n")
	got, ok := appendYAMLItem(before, raw, quotes{})
	if !ok {
		if !bytes.Equal(got, before) {
			t.Errorf("%q: dst is %q after a refusal", raw, got)
		}
		return false
	}
	want, err := yaml.Marshal([]any{decoded})
	if err != nil {
		t.Errorf("%q is written, but the library refuses it: %v", raw, err)
		return true
	}
	if string(got) != string(before)+string(want) {
		t.Errorf("%q is written\n%s\nwant\n%s", raw, got, want)
	}
	return true
}

func TestYAMLItems(t *testing.T) {
	for _, value := range awkward {
		raw, err := json.Marshal(thing("a",
			map[string]any{"value": value, "list": []any{value, value, []any{value}}}).Object)
		if err != nil {
			t.Fatal(err)
		}
		checkYAML(t, raw)
	}
	for seed := range uint64(300) {
		raw, err := json.Marshal(generated(rand.New(rand.NewPCG(seed, 3)), "some text: on its way").Object)
		if err != nil {
			t.Fatal(err)
		}
		checkYAML(t, raw)
	}
	for _, document := range oddDocuments {
		checkYAML(t, []byte(document))
	}
}

// TestUsualYAMLItems checks that typical documents are not decoded.
func TestUsualYAMLItems(t *testing.T) {
	usual := certificate()
	usual.Object["metadata"] = map[string]any{
		"name": "web", "namespace": "n", "uid": "0e1f4a5c-1111-2222-3333-444455556666",
		"resourceVersion": "12345", "generation": int64(3),
		"creationTimestamp": "2025-12-01T10:00:00Z", "finalizers": []any{}, "annotations": map[string]any{
			"example.io/yes": "yes", "example.io/note": strings.Repeat("a note that goes on ", 12) +
				"end", "example.io/port": "8080", "example.io/empty": "",
		},
	}
	raw, err := json.Marshal(usual.Object)
	if err != nil {
		t.Fatal(err)
	}
	if !checkYAML(t, raw) {
		t.Errorf("%s has to be decoded", raw)
	}
}

func FuzzYAMLItems(f *testing.F) {
	for _, document := range oddDocuments {
		f.Add([]byte(document))
	}
	for seed := range uint64(20) {
		raw, err := json.Marshal(generated(rand.New(rand.NewPCG(seed, 3)), "some text: on its way").Object)
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
	f.Fuzz(func(t *testing.T, raw []byte) { checkYAML(t, raw) })
}

func BenchmarkYAMLItem(b *testing.B) {
	raw, err := json.Marshal(certificate().Object)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("raw", func(b *testing.B) {
		b.ReportAllocs()
		var out []byte
		known := quotes{}
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
