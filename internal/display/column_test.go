package display

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
			columns := NewColumns([]ColumnDefinition{{Name: "C", Type: tt.columnType, JSONPath: tt.path}})
			if diff := cmp.Diff(tt.want, columns[0].Cell(object)); diff != "" {
				t.Errorf("Cell (-want +got):\n%s", diff)
			}
			columns[0].fields = nil
			if diff := cmp.Diff(tt.want, columns[0].Cell(object)); diff != "" {
				t.Errorf("Cell with client-go's jsonpath (-want +got):\n%s", diff)
			}
		})
	}
	if got := NewColumns([]ColumnDefinition{{Type: "date", JSONPath: ".when"}})[0].Value(object); got != created {
		t.Errorf("Value of a date = %v, want %v", got, created)
	}
}

func BenchmarkColumn(b *testing.B) {
	object := map[string]any{"spec": map[string]any{"secretName": "tls"}}
	column := NewColumns([]ColumnDefinition{{Type: "string", JSONPath: ".spec.secretName"}})[0]
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
