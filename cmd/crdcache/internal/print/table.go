package print

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

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

// TypeTable prints a table of one type, as kubectl get does. Only the cells are kept until Flush or Close,
// because the widths of the columns depend on all of them.
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

// csvType is a type of which objects are printed as comma-separated values.
type csvType struct {
	Rows Rows
	// Kind is what the column of kinds shows.
	Kind string
}

// csvTable prints the columns of types, those of wide tables included, as comma-separated values. Dates are
// timestamps rather than ages, and what is missing is empty. Several types share one header, which has each
// of their columns once.
type csvTable struct {
	w                       *csv.Writer
	withNamespace, withKind bool
	header                  []string
	// headed says that the header is written, or not wanted.
	headed bool
	names  []string // of the columns of the types
}

// newCSV returns the table of all objects of types. Without any object there is no header either.
func newCSV(w io.Writer, types []csvType, withNamespace, withKind, noHeaders bool) *csvTable {
	t := &csvTable{w: csv.NewWriter(w), withNamespace: withNamespace, withKind: withKind, headed: noHeaders}
	for _, one := range types {
		t.places(one.Rows)
	}
	if withKind {
		t.header = append(t.header, "KIND")
	}
	if withNamespace {
		t.header = append(t.header, "NAMESPACE")
	}
	t.header = append(t.header, t.names...)
	return t
}

// of returns the printer of the objects of one of the types.
func (t *csvTable) of(one csvType) Printer {
	return &csvRows{csvTable: t, csvType: one, places: t.places(one.Rows)}
}

// places tells for each column of a type which of the table it is, and adds those that the table does not
// have. A type may have two columns of one name.
func (t *csvTable) places(rows Rows) []int {
	var places []int
	for _, definition := range rows.Definitions() {
		name := strings.ToUpper(definition.Name)
		place := 0
		for place < len(t.names) && (t.names[place] != name || slices.Contains(places, place)) {
			place++
		}
		if place == len(t.names) {
			t.names = append(t.names, name)
		}
		places = append(places, place)
	}
	return places
}

// csvRows prints the objects of one type.
type csvRows struct {
	*csvTable
	csvType
	places []int // of its columns among those of the table
}

// Print implements Printer.
func (p *csvRows) Print(o Object) error {
	obj, err := o.decode()
	if err != nil {
		return err
	}
	if !p.headed {
		if err := p.w.Write(p.header); err != nil {
			return err
		}
		p.headed = true
	}
	var row []string
	if p.withKind {
		row = append(row, p.Kind)
	}
	if p.withNamespace {
		row = append(row, obj.GetNamespace())
	}
	cells := make([]string, len(p.names))
	for i, value := range p.Rows.Values(obj) {
		if value != nil && i < len(p.places) {
			cells[p.places[i]] = fmt.Sprint(value)
		}
	}
	return p.w.Write(append(row, cells...))
}

// Flush implements flusher.
func (p *csvRows) Flush() error {
	p.w.Flush()
	return p.w.Error()
}

// Close implements Printer.
func (p *csvRows) Close() error { return p.Flush() }
