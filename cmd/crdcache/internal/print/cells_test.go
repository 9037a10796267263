package print

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/crdcache/crdcache/discovery/crd"
)

// printTable returns the lines of a table without trailing spaces.
func printTable(t *testing.T, columns []crd.Column, options printers.PrintOptions,
	objects ...*unstructured.Unstructured) []string {
	t.Helper()
	var out bytes.Buffer
	table := NewTypeTable(&out, NewRows(columns), options)
	for _, obj := range objects {
		if err := table.Print(NewObject(obj)); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return lines
}

func printCell(t *testing.T, columnType string, value any) string {
	t.Helper()
	lines := printTable(t, []crd.Column{{Name: "X", Type: columnType, JSONPath: ".spec"}},
		printers.PrintOptions{NoHeaders: true}, newThing("n", value))
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "n") {
		t.Fatalf("the table is %q, want one row", lines)
	}
	return strings.TrimSpace(strings.TrimPrefix(lines[0], "n"))
}

func TestCells(t *testing.T) {
	longAgo := time.Now().Add(-50 * 24 * time.Hour).UTC().Format(time.RFC3339)
	tests := []struct {
		column string
		value  any
		want   string
	}{
		{"integer", int64(7), "7"},
		{"integer", 7.9, "7"},
		{"integer", "7", ""},
		{"integer", true, ""},
		{"number", 1.5, "1.5"},
		{"number", int64(2), "2"},
		{"number", "1.5", ""},
		{"boolean", true, "true"},
		{"boolean", false, "false"},
		{"boolean", "true", ""},
		{"boolean", int64(1), ""},
		{"string", "text", "text"},
		{"string", "", ""},
		{"string", int64(7), "7"},
		{"string", 1.5, "1.5"},
		{"string", true, "true"},
		{"string", map[string]any{"a": "b"}, `{"a":"b"}`},
		{"string", []any{"a", int64(1)}, `["a",1]`},
		{"date", longAgo, "50d"},
		{"date", "yesterday", "<invalid>"},
		{"date", int64(7), ""},
		{"unheard-of", "x", ""},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s/%v", tt.column, tt.value), func(t *testing.T) {
			if got := printCell(t, tt.column, tt.value); got != tt.want {
				t.Errorf("the cell is %q, want %q", got, tt.want)
			}
		})
	}
}

func TestMissingCells(t *testing.T) {
	obj := newThing("n", map[string]any{"list": []any{map[string]any{"type": "Other", "status": "True"}},
		"null": nil})
	for _, columnType := range []string{"integer", "number", "boolean", "string", "date"} {
		for _, path := range []string{
			".status.nothing", ".metadata.name.deeper", ".spec.list[5]",
			`.spec.list[?(@.type=="Ready")].status`,
		} {
			columns := []crd.Column{
				{Name: "Gone", Type: columnType, JSONPath: path},
				{Name: "Last", Type: "string", JSONPath: ".metadata.namespace"},
			}
			lines := printTable(t, columns, printers.PrintOptions{NoHeaders: true}, obj)
			if len(lines) != 1 || !cmp.Equal(strings.Fields(lines[0]), []string{"n", "web"}) {
				t.Errorf("%s %s: the table is %q, want an empty cell", columnType, path, lines)
			}
		}
	}
}

// TestHostileCells checks that cells cannot break lines or control a terminal. cli-runtime truncates at line
// breaks and shows ESC as "^["; this package replaces the others.
func TestHostileCells(t *testing.T) {
	tests := map[string]struct{ value, want string }{
		"newline":         {"first\nsecond", "first..."},
		"carriage return": {"first\rsecond", "first..."},
		"form feed":       {"first\fsecond", "first..."},
		"escape sequence": {"\x1b[31mred", "^[[31mred"},
		"both":            {"\x1b[2J\nx", "^[[2J..."},
		"one-rune CSI":    {"\u009b31mred", "\ufffd31mred"},
		"bell":            {"\x1b]0;title\x07", "^[]0;title\ufffd"},
		"backspace":       {"abc\b\b\bxyz", "abc\ufffd\ufffd\ufffdxyz"},
		"delete and null": {"a\x7f\x00b", "a\ufffd\ufffdb"},
		"wide":            {"日本語", "日本語"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := printCell(t, "string", tt.value); got != tt.want {
				t.Errorf("the cell is %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTableOptions(t *testing.T) {
	columns := []crd.Column{
		{Name: "Spec", Type: "string", JSONPath: ".spec"},
		{Name: "Detail", Type: "string", JSONPath: ".kind", Priority: 1},
	}
	kind := schema.GroupKind{Group: "example.com", Kind: "Thing"}
	tests := map[string]struct {
		options printers.PrintOptions
		want    []string
	}{
		"plain": {printers.PrintOptions{}, []string{"NAME   SPEC", "n      s"}},
		"wide": {printers.PrintOptions{Wide: true},
			[]string{"NAME   SPEC   DETAIL", "n      s      Thing"}},
		"no headers": {printers.PrintOptions{NoHeaders: true}, []string{"n     s"}},
		"namespace": {printers.PrintOptions{WithNamespace: true}, []string{"NAMESPACE   NAME   SPEC",
			"web         n      s"}},
		"kind": {printers.PrintOptions{WithKind: true, Kind: kind},
			[]string{"NAME                  SPEC", "thing.example.com/n   s"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := printTable(t, columns, tt.options, newThing("n", "s"))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("the table (-want +got):\n%s", diff)
			}
		})
	}
	if got := printTable(t, columns, printers.PrintOptions{}); got != nil {
		t.Errorf("a table without rows = %q, want no output", got)
	}
}

// TestTableAlignment verifies that columns are aligned with the header in all of cli-runtime's batches of
// rows.
func TestTableAlignment(t *testing.T) {
	var objects []*unstructured.Unstructured
	for n := range 250 {
		objects = append(objects, newThing(strings.Repeat("n", 1+n%200), "spec"))
	}
	lines := printTable(t, []crd.Column{{Name: "Spec", Type: "string", JSONPath: ".spec"}},
		printers.PrintOptions{}, objects...)
	at := strings.Index(lines[0], "SPEC")
	for _, line := range lines[1:] {
		if strings.Index(line, "spec") != at {
			t.Fatalf("the column does not begin at %d: %q", at, line)
		}
	}
}

// TestCompareValues compares values that are listed in their order.
func TestCompareValues(t *testing.T) {
	values := []any{
		nil, false, true, int64(-1), 0.5, int64(1), int64(1<<53) + 1, int64(1<<53) + 2, 1e300,
		"", "100m", "1", "1Ki", "2Gi", "3G", "node-9", "node-10", "node-10a", "node-010", "web",
	}
	for i, a := range values {
		for j, b := range values {
			got := compareValues(a, b)
			if got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("compareValues(%v, %v) = %d, want the order of the list", a, b, got)
			}
		}
	}
}

func TestTableOfColumnsThatCannotBeParsed(t *testing.T) {
	good := crd.Column{Name: "Good", Type: "string", JSONPath: ".spec.text"}
	bad := crd.Column{Name: "Bad", Type: "string", JSONPath: ".spec["}
	tests := map[string]struct {
		columns []crd.Column
		want    string
	}{
		"first":      {[]crd.Column{bad, good}, "NAME\nx\n"},
		"in between": {[]crd.Column{good, bad, good}, "NAME   GOOD\nx      some\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			table := NewTypeTable(&out, NewRows(tt.columns), printers.PrintOptions{})
			obj := &unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"name": "x"},
				"spec":     map[string]any{"text": "some"},
			}}
			if err := table.Print(NewObject(obj)); err != nil {
				t.Fatal(err)
			}
			if err := table.Close(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}
