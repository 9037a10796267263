package print

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// TestSortedValues verifies the order of values of different types, which kubectl does not sort, and of
// texts.
func TestSortedValues(t *testing.T) {
	values := []any{
		nil, false, true, int64(-1), 0.5, int64(1), int64(1<<53) + 1, int64(1<<53) + 2, 1e300,
		"100m", "1", "1Ki", "2Gi", "3G", "Web", "node-010", "node-10", "node-9", "web",
	}
	order, err := ParseOrder(".value")
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(10) {
		shuffled := slices.Clone(values)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(shuffled), func(i, j int) {
			shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
		})
		got, err := Sorted(order, shuffled, func(v any) (*unstructured.Unstructured, error) {
			return &unstructured.Unstructured{Object: map[string]any{"value": v}}, nil
		})
		if diff := cmp.Diff(values, got); diff != "" || err != nil {
			t.Errorf("%v; (-want +got):\n%s", err, diff)
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
