package print

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/printcolumn"
)

// Rows say what the columns of a type are, and what an object shows in them.
type Rows interface {
	// Definitions are the columns, of which the first is the name.
	Definitions() []metav1.TableColumnDefinition
	// Cells are those of one object, one for each column but for missing ones at the end; nil is an empty
	// cell.
	Cells(obj *unstructured.Unstructured) []any
	// Values are Cells with dates as timestamps rather than ages, where those are known.
	Values(obj *unstructured.Unstructured) []any
	// Sort puts keys in the order of the rows.
	Sort(keys []string)
}

// nameColumn is the first of every table.
var nameColumn = metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name"}

// crdRows has the columns of a CRD.
type crdRows struct{ columns []column }

// NewRows returns the rows of these columns of a CRD, or of the age alone when there are none.
func NewRows(columns []crd.Column) Rows { return crdRows{newColumns(columns)} }

// Definitions implements Rows.
func (r crdRows) Definitions() []metav1.TableColumnDefinition {
	definitions := []metav1.TableColumnDefinition{nameColumn}
	for _, c := range r.columns {
		definitions = append(definitions, metav1.TableColumnDefinition{Name: c.Name, Type: c.Type,
			Format: c.Format, Priority: c.Priority})
	}
	return definitions
}

// Cells implements Rows.
func (r crdRows) Cells(obj *unstructured.Unstructured) []any {
	cells := make([]any, 0, 1+len(r.columns))
	cells = append(cells, safe(obj.GetName()))
	for _, c := range r.columns {
		cells = append(cells, c.cell(obj))
	}
	return cells
}

// Values implements Rows.
func (r crdRows) Values(obj *unstructured.Unstructured) []any {
	values := make([]any, 0, 1+len(r.columns))
	values = append(values, safe(obj.GetName()))
	for _, c := range r.columns {
		values = append(values, c.value(obj))
	}
	return values
}

// Sort implements Rows: the order is that of the API server's lists.
func (r crdRows) Sort(keys []string) { SortKeys(keys) }

// ServerRow is a row that an API server printed, with the key of its object ("namespace/name", or "name").
type ServerRow struct {
	Key   string
	Cells []any
}

// serverRows are what the API server printed.
type serverRows struct {
	definitions []metav1.TableColumnDefinition
	cells       map[string][]any
	places      map[string]int
}

// NewServerRows returns the rows that an API server printed, in its order: of some types it prints rows in
// another order than it lists objects. An object that it did not print, for it is newer, comes last and shows
// its name alone.
func NewServerRows(definitions []metav1.TableColumnDefinition, printed []ServerRow) Rows {
	r := serverRows{definitions: definitions, cells: map[string][]any{}, places: map[string]int{}}
	for i, row := range printed {
		for n, cell := range row.Cells {
			row.Cells[n] = safe(cell)
		}
		r.cells[row.Key], r.places[row.Key] = row.Cells, i
	}
	return r
}

// Sort implements Rows.
func (r serverRows) Sort(keys []string) {
	place := func(key string) int {
		if i, ok := r.places[key]; ok {
			return i
		}
		return len(r.places)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(place(a)-place(b), strings.Compare(a, b)) })
}

// Definitions implements Rows.
func (r serverRows) Definitions() []metav1.TableColumnDefinition { return r.definitions }

// Cells implements Rows.
func (r serverRows) Cells(obj *unstructured.Unstructured) []any {
	if cells, ok := r.cells[keyOf(obj)]; ok {
		return cells // some types have fewer than there are columns
	}
	cells := make([]any, len(r.definitions))
	if len(cells) > 0 {
		cells[0] = safe(obj.GetName())
	}
	return cells
}

// Values implements Rows: the server prints ages only.
func (r serverRows) Values(obj *unstructured.Unstructured) []any { return r.Cells(obj) }

// printedRows are rows that came with the objects.
type printedRows struct {
	definitions []metav1.TableColumnDefinition
	cells       func(*unstructured.Unstructured) []any
}

// NewPrintedRows returns rows whose cells come from somebody who printed each object.
func NewPrintedRows(definitions []metav1.TableColumnDefinition,
	cells func(*unstructured.Unstructured) []any) Rows {
	return printedRows{definitions, cells}
}

// Definitions implements Rows.
func (r printedRows) Definitions() []metav1.TableColumnDefinition { return r.definitions }

// Cells implements Rows.
func (r printedRows) Cells(obj *unstructured.Unstructured) []any {
	cells := slices.Clone(r.cells(obj))
	for i, cell := range cells {
		cells[i] = safe(cell)
	}
	return cells
}

// Values implements Rows: ages are all that is there.
func (r printedRows) Values(obj *unstructured.Unstructured) []any { return r.Cells(obj) }

// Sort implements Rows.
func (r printedRows) Sort(keys []string) { SortKeys(keys) }

// labelled are rows with columns for labels after those of the type.
type labelled struct {
	Rows
	columns []string
	all     bool // another column, with all labels
}

// Rows adds to the columns of a type those for labels.
func (s Style) Rows(rows Rows) Rows {
	if len(s.LabelColumns) == 0 && !s.ShowLabels {
		return rows
	}
	return labelled{rows, s.LabelColumns, s.ShowLabels}
}

// Definitions implements output.Rows. Headers are the last parts of the names of labels, as kubectl get has
// them.
func (l labelled) Definitions() []metav1.TableColumnDefinition {
	definitions := append([]metav1.TableColumnDefinition(nil), l.Rows.Definitions()...)
	for _, name := range l.columns {
		definitions = append(definitions,
			metav1.TableColumnDefinition{Name: Printable(name[strings.LastIndex(name, "/")+1:]),
				Type: "string"})
	}
	if l.all {
		definitions = append(definitions, metav1.TableColumnDefinition{Name: "Labels", Type: "string"})
	}
	return definitions
}

// Cells implements output.Rows.
func (l labelled) Cells(obj *unstructured.Unstructured) []any { return l.add(l.Rows.Cells(obj), obj) }

// Values implements output.Rows.
func (l labelled) Values(obj *unstructured.Unstructured) []any { return l.add(l.Rows.Values(obj), obj) }

// add appends the labels of an object to its cells.
func (l labelled) add(cells []any, obj *unstructured.Unstructured) []any {
	cells = append([]any(nil), cells...)
	for len(cells) < len(l.Rows.Definitions()) {
		cells = append(cells, nil)
	}
	of := obj.GetLabels()
	for _, name := range l.columns {
		cells = append(cells, Printable(of[name]))
	}
	if l.all {
		cells = append(cells, Printable(labels.FormatLabels(of)))
	}
	return cells
}

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
