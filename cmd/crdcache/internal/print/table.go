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

// tabWriter is the writer that cli-runtime's table printer needs.
type tabWriter interface {
	io.Writer
	Flush() error
}

// TypeTable prints a table of one type, as kubectl get does. It buffers only the cells, because the column
// widths depend on all of them.
type TypeTable struct {
	columns tabWriter
	options printers.PrintOptions
	rows    RowFormatter
	table   metav1.Table
}

func NewTypeTable(w io.Writer, rows RowFormatter, options printers.PrintOptions) *TypeTable {
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
	t.table.Rows = append(t.table.Rows, TableRow(t.rows, obj))
	return nil
}

// TableRow returns the row of an object with the metadata that the table printer reads.
func TableRow(rows RowFormatter, obj *unstructured.Unstructured) metav1.TableRow {
	m := &metav1.PartialObjectMetadata{}
	m.SetName(obj.GetName())
	m.SetNamespace(obj.GetNamespace())
	return metav1.TableRow{Cells: rows.Cells(obj), Object: runtime.RawExtension{Object: m}}
}

// setRows sets the formatter of the next rows. It returns false if the columns differ.
func (t *TypeTable) setRows(rows RowFormatter) bool {
	same := slices.EqualFunc(t.rows.Definitions(), rows.Definitions(), SameColumn)
	if same {
		t.rows = rows
	}
	return same
}

// SameColumn reports whether two columns are printed alike. Their descriptions can differ between servers.
func SameColumn(a, b metav1.TableColumnDefinition) bool {
	return a.Name == b.Name && a.Type == b.Type && a.Format == b.Format && a.Priority == b.Priority
}

// Flush implements flusher. Columns do not become narrower afterwards, as in kubectl get --watch.
func (t *TypeTable) Flush() error {
	if len(t.table.Rows) == 0 {
		return nil
	}
	part := t.table // printing appends columns to it
	if err := NewTablePrinter(t.options).PrintObj(&part, t.columns); err != nil {
		return err
	}
	t.table.Rows, t.options.NoHeaders = nil, true
	return t.columns.Flush()
}

// Close implements Printer.
func (t *TypeTable) Close() error { return t.Flush() }

type csvResource struct {
	Rows RowFormatter
	// Kind and Cluster are the values of the columns with these names.
	Kind, Cluster string
}

// csvTable prints all columns of the types, including those of wide tables, as CSV. Dates are timestamps and
// missing values are empty. Several types share one header with each distinct column once.
type csvTable struct {
	w                       *csv.Writer
	withNamespace, withKind bool
	header                  []string
	// headerWritten is set if the header is written or suppressed.
	headerWritten bool
	names         []string // of the columns of all types
	errOut        io.Writer
}

// newCSV returns a table of the objects of types. Without objects it prints no header.
func newCSV(w io.Writer, types []csvResource, withNamespace, withKind, noHeaders bool) *csvTable {
	t := &csvTable{w: csv.NewWriter(w), withNamespace: withNamespace, withKind: withKind,
		headerWritten: noHeaders}
	for _, resource := range types {
		t.columnIndexes(resource.Rows)
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

// printerFor returns the printer of a type. A later cluster can have columns that the header lacks. They are
// omitted with a warning.
func (t *csvTable) printerFor(typ csvResource) Printer {
	known := len(t.names)
	p := &csvRows{csvTable: t, csvResource: typ, columnIndexes: t.columnIndexes(typ.Rows)}
	if missing := t.names[known:]; len(missing) > 0 {
		Warnf(t.errOut, "%s: these columns are omitted, because the CSV header of another cluster lacks them: %s",
			typ.Cluster, strings.Join(missing, ", "))
		t.names = t.names[:known]
	}
	return p
}

// columnIndexes maps the type's columns to the table's and appends missing ones. A type can have two columns
// with one name.
func (t *csvTable) columnIndexes(rows RowFormatter) []int {
	var indexes []int
	for _, definition := range rows.Definitions() {
		name := strings.ToUpper(definition.Name)
		index := 0
		for index < len(t.names) && (t.names[index] != name || slices.Contains(indexes, index)) {
			index++
		}
		if index == len(t.names) {
			t.names = append(t.names, name)
		}
		indexes = append(indexes, index)
	}
	return indexes
}

// csvRows prints the objects of one type.
type csvRows struct {
	*csvTable
	csvResource
	columnIndexes []int // in the table's columns
}

func (p *csvRows) Print(o Object) error {
	obj, err := o.decode()
	if err != nil {
		return err
	}
	if !p.headerWritten {
		if err := p.w.Write(p.header); err != nil {
			return err
		}
		p.headerWritten = true
	}
	var row []string
	if p.Cluster != "" {
		row = append(row, p.Cluster)
	}
	if p.withKind {
		row = append(row, p.Kind)
	}
	if p.withNamespace {
		row = append(row, obj.GetNamespace())
	}
	cells := make([]string, len(p.names))
	for i, value := range p.Rows.Values(obj) {
		if value != nil && i < len(p.columnIndexes) && p.columnIndexes[i] < len(cells) {
			cells[p.columnIndexes[i]] = fmt.Sprint(value)
		}
	}
	return p.w.Write(append(row, cells...))
}

func (p *csvRows) Flush() error {
	p.w.Flush()
	return p.w.Error()
}

func (p *csvRows) Close() error { return p.Flush() }
