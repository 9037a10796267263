package print

import (
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/printcolumn"
)

// column is a printer column whose cells are safe to show on a terminal.
type column struct{ printcolumn.Column }

// newColumns parses the paths.
func newColumns(declared []crd.Column) []column {
	definitions := make([]printcolumn.Definition, len(declared))
	for i, c := range declared {
		definitions[i] = printcolumn.Definition(c)
	}
	var columns []column
	for _, c := range printcolumn.New(definitions) {
		columns = append(columns, column{c})
	}
	return columns
}

// cell is what the API server puts into the column for obj, nil where there is nothing.
func (c column) cell(obj *unstructured.Unstructured) any { return safe(c.Cell(obj.Object)) }

// value is cell, with dates as the object has them.
func (c column) value(obj *unstructured.Unstructured) any { return safe(c.Value(obj.Object)) }

func safe(cell any) any {
	if text, ok := cell.(string); ok {
		return printable(text)
	}
	return printcolumn.Decoded(cell)
}

// printable replaces the control characters that the table printer lets through to the terminal: among
// them is one that starts escape sequences as ESC does. The printer itself shows ESC, cuts at line breaks and
// takes tabs for the ends of cells, as kubectl does.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !strings.ContainsRune("\x1b\n\r\f\v\t", r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
