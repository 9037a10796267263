package live

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/printcolumn"
)

// rows builds the table rows of custom resources. It serves one request, because columns are not safe for
// concurrent use.
type rows struct{ columns []printcolumn.Column }

// newRows returns the rows for the cached version of a type.
func newRows(c *collection) *rows {
	var declared []printcolumn.Definition
	for _, version := range c.typ.Versions {
		if version.Name == c.gvr.Version {
			for _, column := range version.Columns {
				declared = append(declared, printcolumn.Definition(column))
			}
		}
	}
	return &rows{printcolumn.New(declared)}
}

// definitions returns the columns, beginning with the name.
func (r *rows) definitions() []metav1.TableColumnDefinition {
	all := []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name"}}
	for _, c := range r.columns {
		all = append(all, metav1.TableColumnDefinition{Name: c.Name, Type: c.Type, Format: c.Format,
			Description: c.Description, Priority: c.Priority})
	}
	return all
}

// of returns the row of an object.
func (r *rows) of(object *unstructured.Unstructured) Row {
	row := Row{Namespace: object.GetNamespace(), Name: object.GetName(), Labels: object.GetLabels(),
		Cells: []any{object.GetName()}}
	for _, c := range r.columns {
		row.Cells = append(row.Cells, c.Cell(object.Object))
	}
	return row
}
