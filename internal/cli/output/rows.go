package output

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/discovery/crd"
)

// Rows say what the columns of a type are, and what an object shows in them.
type Rows interface {
	// Definitions are the columns, of which the first is the name.
	Definitions() []metav1.TableColumnDefinition
	// Cells are those of one object, one for each column; nil is an empty cell.
	Cells(obj *unstructured.Unstructured) []any
	// Values are Cells with dates as timestamps rather than ages, where those are known.
	Values(obj *unstructured.Unstructured) []any
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
		definitions = append(definitions, metav1.TableColumnDefinition{Name: c.Name, Type: c.Type, Format: c.Format, Priority: c.Priority})
	}
	return definitions
}

// Cells implements Rows.
func (r crdRows) Cells(obj *unstructured.Unstructured) []any {
	cells := make([]any, 0, 1+len(r.columns))
	cells = append(cells, obj.GetName())
	for _, c := range r.columns {
		cells = append(cells, c.cell(obj))
	}
	return cells
}

// Values implements Rows.
func (r crdRows) Values(obj *unstructured.Unstructured) []any {
	values := make([]any, 0, 1+len(r.columns))
	values = append(values, obj.GetName())
	for _, c := range r.columns {
		values = append(values, c.value(obj))
	}
	return values
}

// serverRows are what the API server printed.
type serverRows struct {
	definitions []metav1.TableColumnDefinition
	cells       map[string][]any
}

// NewServerRows returns the rows that an API server printed, by the keys of their objects ("namespace/name", or
// "name"). An object that it did not print, for it is newer, shows its name alone.
func NewServerRows(definitions []metav1.TableColumnDefinition, cells map[string][]any) Rows {
	return serverRows{definitions, cells}
}

// Definitions implements Rows.
func (r serverRows) Definitions() []metav1.TableColumnDefinition { return r.definitions }

// Cells implements Rows.
func (r serverRows) Cells(obj *unstructured.Unstructured) []any {
	key := obj.GetName()
	if namespace := obj.GetNamespace(); namespace != "" {
		key = namespace + "/" + key
	}
	if cells, ok := r.cells[key]; ok && len(cells) == len(r.definitions) {
		return cells
	}
	cells := make([]any, len(r.definitions))
	if len(cells) > 0 {
		cells[0] = obj.GetName()
	}
	return cells
}

// Values implements Rows: the server prints ages only.
func (r serverRows) Values(obj *unstructured.Unstructured) []any { return r.Cells(obj) }
