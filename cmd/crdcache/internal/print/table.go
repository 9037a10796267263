package print

import (
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
)

// tabWriter is what the table printer of cli-runtime writes to.
type tabWriter interface {
	io.Writer
	Flush() error
}

// TypeTable prints a table of one type, as kubectl get does. Only the cells are kept until Flush or Close, because the
// widths of the columns depend on all of them.
type TypeTable struct {
	columns tabWriter
	options printers.PrintOptions
	rows    Rows
	table   metav1.Table
}

// NewTypeTable returns a table with these rows.
func NewTypeTable(w io.Writer, rows Rows, options printers.PrintOptions) *TypeTable {
	t := &TypeTable{columns: printers.GetNewTabWriter(w), options: options, rows: rows}
	t.table.ColumnDefinitions = rows.Definitions()
	return t
}

// Print implements Printer.
func (t *TypeTable) Print(o Object) error {
	obj, err := o.decode()
	if err != nil {
		return err
	}
	t.table.Rows = append(t.table.Rows, metav1.TableRow{
		Cells: t.rows.Cells(obj), Object: runtime.RawExtension{Object: t.identity(obj)},
	})
	return nil
}

// identity is the part of an object that the table printer looks at.
func (t *TypeTable) identity(obj *unstructured.Unstructured) runtime.Object {
	m := &metav1.PartialObjectMetadata{}
	m.SetName(obj.GetName())
	m.SetNamespace(obj.GetNamespace())
	return m
}

// Flush implements flusher. No column becomes narrower afterwards, as in kubectl get --watch.
func (t *TypeTable) Flush() error {
	if len(t.table.Rows) == 0 {
		return nil
	}
	part := t.table // printing adds columns to it
	if err := printers.NewTablePrinter(t.options).PrintObj(&part, t.columns); err != nil {
		return err
	}
	t.table.Rows, t.options.NoHeaders = nil, true
	return t.columns.Flush()
}

// Close implements Printer: it writes the table, or nothing when it has no rows.
func (t *TypeTable) Close() error { return t.Flush() }
