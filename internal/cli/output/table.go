package output

import (
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/crdcache/crdcache/discovery/crd"
)

// TypeTable prints a table of one type with the columns of its CRD, as kubectl get does. Only the cells are
// kept until Close, because the widths of the columns depend on all of them.
type TypeTable struct {
	w       io.Writer
	options printers.PrintOptions
	columns []column
	table   metav1.Table
}

// NewTypeTable returns a table with these columns, or with the age alone when there are none.
func NewTypeTable(w io.Writer, columns []crd.Column, options printers.PrintOptions) *TypeTable {
	t := &TypeTable{w: w, options: options, columns: newColumns(columns)}
	t.table.ColumnDefinitions = []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name"}}
	for _, c := range t.columns {
		t.table.ColumnDefinitions = append(t.table.ColumnDefinitions, metav1.TableColumnDefinition{
			Name: c.Name, Type: c.Type, Format: c.Format, Priority: c.Priority,
		})
	}
	return t
}

// Print implements Printer.
func (t *TypeTable) Print(obj *unstructured.Unstructured) error {
	cells := make([]any, 0, 1+len(t.columns))
	cells = append(cells, obj.GetName())
	for _, c := range t.columns {
		cells = append(cells, c.cell(obj))
	}
	t.table.Rows = append(t.table.Rows, metav1.TableRow{Cells: cells, Object: runtime.RawExtension{Object: t.identity(obj)}})
	return nil
}

// identity is the part of an object that the table printer looks at.
func (t *TypeTable) identity(obj *unstructured.Unstructured) runtime.Object {
	m := &metav1.PartialObjectMetadata{}
	m.SetName(obj.GetName())
	m.SetNamespace(obj.GetNamespace())
	return m
}

// Close implements Printer: it writes the table, or nothing when it has no rows.
func (t *TypeTable) Close() error {
	if len(t.table.Rows) == 0 {
		return nil
	}
	w := printers.GetNewTabWriter(t.w)
	if err := printers.NewTablePrinter(t.options).PrintObj(&t.table, w); err != nil {
		return err
	}
	return w.Flush()
}
