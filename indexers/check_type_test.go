package indexers_test

import (
	"strings"
	"testing"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
)

// TestTypesAgainstSchemas verifies that the findings agree with the index: an error if the index has none of
// the values that a schema allows, a warning if it has only some of them.
func TestTypesAgainstSchemas(t *testing.T) {
	text := []any{"x", "7", "true", "2026-01-01T00:00:00Z", "90m", "10.0.0.1", "1.2.3",
		"2026-01-31", "10.0.0.0/8"}
	kinds := []struct {
		name    string
		schema  crd.Schema
		values  []any
		anyText bool // the schema allows any text: text that does not fit the type is not reported
	}{
		{"boolean", crd.Schema{Type: "boolean"}, []any{true, false}, false},
		{"integer", crd.Schema{Type: "integer"}, []any{int64(1), int64(7)}, false},
		{"number", crd.Schema{Type: "number"}, []any{int64(7), 2.5}, false},
		{"text", crd.Schema{Type: "string"}, text, true},
		{"time", crd.Schema{Type: "string", Format: "date-time"},
			[]any{"2026-01-01T00:00:00Z", "2026-01-01T01:00:00.5+01:00"}, false},
		{"other format", crd.Schema{Type: "string", Format: "hostname"}, text, true},
		{"conditions", crd.Schema{Type: "string", Enum: []any{"True", "False", "Unknown"}},
			[]any{"True", "False", "Unknown"}, false},
		{"words", crd.Schema{Type: "string", Enum: []any{"big", "small"}}, []any{"big", "small"}, false},
		{"words and a number", crd.Schema{Type: "string", Enum: []any{"auto", "90m", "7"}},
			[]any{"auto", "90m", "7"}, false},
		{"numbers", crd.Schema{Type: "integer", Enum: []any{1.0, 7.0}}, []any{int64(1), int64(7)}, false},
		{"date", crd.Schema{Type: "string", Format: "date"}, []any{"2026-01-31"}, false},
		{"cidr", crd.Schema{Type: "string", Format: "cidr"}, []any{"10.0.0.0/8", "::/0"}, false},
		{"ipv4", crd.Schema{Type: "string", Format: "ipv4"}, []any{"10.0.0.1"}, false},
		{"format duration", crd.Schema{Type: "string", Format: "duration"}, []any{"90m"}, false},
		{"uuid", crd.Schema{Type: "string", Format: "uuid"}, []any{"123e4567-e89b-12d3-a456-426614174000"},
			false},
		{"int-or-string", crd.Schema{IntOrString: true}, append([]any{int64(7)}, text...), true},
	}
	types := []string{"", "String", "Int", "Number", "Bool", "Quantity", "Duration", "Time", "IP", "SemVer",
		"Date", "CIDR"}
	partlyIndexed := 0
	for _, kind := range kinds {
		for _, typ := range types {
			field := ""
			if typ != "" {
				field = ", type: " + typ
			}
			index := "{name: i, path: .spec.v" + field + "}"
			indexed, omitted := 0, 0
			f := compile(t, index)
			for _, v := range kind.values {
				if len(keysOf(t, f, spec(m{"v": v}))) > 0 {
					indexed++
				} else if _, ok := v.(string); !ok || !kind.anyText {
					omitted++
				}
			}
			want := ""
			switch {
			case indexed == 0:
				want = "E307"
			case omitted > 0 && (kind.name != "int-or-string" || typ == "String"): // other types use the text
				want = "W306"
				partlyIndexed++
			}
			schema := kind.schema
			if got := codesOf(t, index, &schema); got != want {
				t.Errorf("codes for type %q on %s = %q, want %q: the index has %d of the values and omits %d",
					typ, kind.name, got, want, indexed, omitted)
			}
		}
	}
	if partlyIndexed != 7 {
		t.Errorf("%d pairs of a type and a schema omit some values; want int on a number, "+
			"string on an int-or-string and five on words and a number", partlyIndexed)
	}
}

// codesOf returns the codes of the findings for an index on a type with the given schema of .spec.v.
func codesOf(t *testing.T, index string, schema *crd.Schema) string {
	t.Helper()
	text := configWith("  - name: w\n    match: {group: example.com, kind: Widget}\n    indexes: [" +
		index + "]\n")
	c, err := indexers.Parse(indexers.Source{Name: "w.yaml",
		Data: []byte(strings.Replace(text, "NAME", "n", 1))})
	if err != nil {
		t.Fatal(err)
	}
	widget := widgetDefinition()
	widget.Versions[0].Schema.Properties["spec"].Properties["v"] = schema
	diagnostics, err := c.Check([]*crd.Definition{widget})
	diagnostics = append(diagnostics, findingsOf(err)...)
	codes := make([]string, len(diagnostics))
	for i, d := range diagnostics {
		codes[i] = string(d.Code)
	}
	return strings.Join(codes, " ")
}
