package display

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
)

func TestCell(t *testing.T) {
	created := time.Now().Add(-61 * time.Minute).UTC().Format(time.RFC3339)
	object := map[string]any{
		"s": "text", "i": int64(3), "f": 2.75, "b": true, "n": nil, "when": created, "never": "soon",
		"list": []any{"a", int64(1)}, "map": map[string]any{"k": []any{int64(1)}}, "outer": map[string]any{"name": "m"},
	}
	tests := map[string]struct {
		columnType, path string
		want             any
	}{
		"string":              {"string", ".s", "text"},
		"number as string":    {"string", ".i", "3"},
		"map as string":       {"string", ".map", `{"k":[1]}`},
		"first of many":       {"string", ".list[*]", "a"},
		"null as string":      {"string", ".n", "<no value>"},
		"nothing":             {"string", ".none", nil},
		"beyond the end":      {"string", ".list[7]", nil},
		"integer":             {"integer", ".i", int64(3)},
		"fraction as integer": {"integer", ".f", int64(2)},
		"string as integer":   {"integer", ".s", nil},
		"number":              {"number", ".f", 2.75},
		"integer as number":   {"number", ".i", 3.0},
		"boolean":             {"boolean", ".b", true},
		"string as boolean":   {"boolean", ".s", nil},
		"date":                {"date", ".when", "61m"},
		"no date":             {"date", ".never", "<invalid>"},
		"number as date":      {"date", ".i", nil},
		"unknown type":        {"colour", ".s", nil},
		"field of a map":      {"string", ".outer.name", "m"},
		"field of a list":     {"string", ".list.name", nil},
		"name of any depth":   {"string", "..name", "m"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			columns := NewColumns([]crd.Column{{Name: "C", Type: tt.columnType, JSONPath: tt.path}})
			if diff := cmp.Diff(tt.want, columns[0].Cell(object, time.Now())); diff != "" {
				t.Errorf("Cell (-want +got):\n%s", diff)
			}
			columns[0].fields = nil
			if diff := cmp.Diff(tt.want, columns[0].Cell(object, time.Now())); diff != "" {
				t.Errorf("Cell with client-go's jsonpath (-want +got):\n%s", diff)
			}
		})
	}
	if got := NewColumns([]crd.Column{{Type: "date", JSONPath: ".when"}})[0].Value(object); got != created {
		t.Errorf("Value of a date = %v, want %v", got, created)
	}
}

func BenchmarkColumn(b *testing.B) {
	object := map[string]any{"spec": map[string]any{"secretName": "tls"}}
	column := NewColumns([]crd.Column{{Type: "string", JSONPath: ".spec.secretName"}})[0]
	slow := column
	slow.fields = nil
	for name, column := range map[string]Column{"fields": column, "jsonpath": slow} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				column.Value(object)
			}
		})
	}
}

var secrets = schema.GroupResource{Resource: "secrets"}

func secret(uid, password string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata": map[string]any{"name": "s", "uid": uid,
			"annotations": map[string]any{lastApplied: `{"data":{"p":"` + password + `"}}`, "team": "edge"}},
		"data":       map[string]any{"p": password, "q": "same"},
		"stringData": map[string]any{"p": password},
		"surprise":   []any{password},
	}
}

func text(t *testing.T, object any) string {
	t.Helper()
	out, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestSecretsAreRedacted(t *testing.T) {
	r := NewRedactor(false)
	before, after, other := secret("1", "aHVudGVyMg"), secret("1", "Y29ycmVjdA"), secret("2", "aHVudGVyMg")
	original := text(t, before)
	redacted := r.Object(secrets, before)
	if got := text(t, redacted); strings.Contains(got, "aHVudGVyMg") ||
		!strings.Contains(got, `"team":"edge"`) || !strings.Contains(got, `"type":"Opaque"`) {
		t.Errorf("the redacted Secret is %s, want its labels and type without its values", got)
	}
	if text(t, before) != original {
		t.Error("Object() changed its argument")
	}
	value := func(object map[string]any, key string) any {
		return r.Object(secrets, object)["data"].(map[string]any)[key]
	}
	if value(before, "p") == value(after, "p") || value(before, "q") != value(after, "q") {
		t.Error("the placeholders of an unchanged value differ, or those of a changed value are equal")
	}
	if value(before, "p") == value(other, "p") {
		t.Error("the placeholders of equal values in two Secrets are equal")
	}
	if NewRedactor(false).Object(secrets, before)["surprise"] == redacted["surprise"] {
		t.Error("two Redactors use the same placeholders, so a reader could compute them")
	}
}

// TestPair checks that the placeholders of two states differ if and only if the values differ, even if the
// Secret was recreated.
func TestPair(t *testing.T) {
	before, after := NewRedactor(false).RedactPair(secrets, secret("1", "aHVudGVyMg"), secret("2", "Y29ycmVjdA"))
	data := func(object map[string]any, key string) any { return object["data"].(map[string]any)[key] }
	if data(before, "p") == data(after, "p") || data(before, "q") != data(after, "q") ||
		data(after, "p") == "Y29ycmVjdA" {
		t.Errorf("the pair is %v and %v, want different placeholders for p and equal ones for q",
			before["data"], after["data"])
	}
}

// FuzzGaps checks that both lists are equal outside of the gaps.
func FuzzGaps(f *testing.F) {
	f.Add("abcabba", "cbabac")
	f.Add("", "x")
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a)*len(b) > 1<<12 {
			return
		}
		before, after := []byte(a), []byte(b)
		i, j := 0, 0
		var rebuilt []byte
		end := DifferingRange{len(a), len(a), len(b), len(b)}
		for _, g := range append(DifferingRanges(before, after), end) {
			if string(before[i:g.Before]) != string(after[j:g.After]) || g.Before > g.BeforeEnd ||
				g.After > g.AfterEnd {
				t.Fatalf("%q and %q differ outside of the gaps", a, b)
			}
			rebuilt = append(append(rebuilt, before[i:g.Before]...), after[g.After:g.AfterEnd]...)
			i, j = g.BeforeEnd, g.AfterEnd
		}
		if string(rebuilt) != b {
			t.Errorf("%q with the gaps filled is %q, want %q", a, rebuilt, b)
		}
	})
}
