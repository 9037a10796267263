package print

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
)

// TabWriter is the writer that cli-runtime's table printer needs.
type TabWriter interface {
	io.Writer
	Flush() error
}

// TypeTable prints a table of one type, as kubectl get does. It buffers the cells, because the column widths
// depend on all rows.
type TypeTable struct {
	out     TabWriter
	options printers.PrintOptions
	rows    *Rows
	table   metav1.Table
}

func NewTypeTable(w io.Writer, rows *Rows, options printers.PrintOptions) *TypeTable {
	t := &TypeTable{out: printers.GetNewTabWriter(w), options: options, rows: rows}
	t.table.ColumnDefinitions = rows.Columns
	return t
}

func (t *TypeTable) Print(o Object) error {
	obj, err := o.decode()
	if err != nil {
		return err
	}
	t.table.Rows = append(t.table.Rows, TableRow(t.rows, obj))
	return nil
}

// TableRow returns the row of an object with the metadata that the table printer reads.
func TableRow(rows *Rows, obj *unstructured.Unstructured) metav1.TableRow {
	m := &metav1.PartialObjectMetadata{}
	m.SetName(obj.GetName())
	m.SetNamespace(obj.GetNamespace())
	return metav1.TableRow{Cells: rows.Cells(obj, false), Object: runtime.RawExtension{Object: m}}
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
	tableCopy := t.table // printing appends columns to it
	if err := NewTablePrinter(t.options).PrintObj(&tableCopy, t.out); err != nil {
		return err
	}
	t.table.Rows, t.options.NoHeaders = nil, true
	return t.out.Flush()
}

func (t *TypeTable) Close() error { return t.Flush() }

// csvTable prints all columns of the types as CSV, including the columns of wide tables. Dates are timestamps
// and missing values are empty. Several types share one header, in which each distinct column occurs once.
type csvTable struct {
	out                                  *csv.Writer
	withCluster, withKind, withNamespace bool
	header                               []string
	// headerWritten is also set if the header is suppressed.
	headerWritten bool
	columnNames   []string // of the columns of all types
	errOut        io.Writer
}

// newCSV returns a table with the columns of the first cluster that has objects.
func (p *Output) newCSV(w *Writer, sections []Section, withKind bool) *csvTable {
	t := &csvTable{out: csv.NewWriter(p.out), errOut: p.ErrOut, headerWritten: p.NoHeaders,
		withCluster: w.Cluster != "", withKind: withKind || p.ShowKind, withNamespace: w.Cluster != ""}
	for _, s := range sections {
		t.mapColumns(p.WithLabelColumns(s.Rows))
		t.withNamespace = t.withNamespace || p.TableOptions(s.Resource, w.Namespace, withKind).WithNamespace
	}
	t.header = append(t.leadingCells("CLUSTER", "KIND", "NAMESPACE"), t.columnNames...)
	return t
}

// leadingCells returns the cells before those of the type's columns.
func (t *csvTable) leadingCells(cluster, kind, namespace string) (cells []string) {
	if t.withCluster {
		cells = append(cells, cluster)
	}
	if t.withKind {
		cells = append(cells, kind)
	}
	if t.withNamespace {
		cells = append(cells, namespace)
	}
	return cells
}

// printerFor returns the printer of a type. If the type has columns that the header lacks, it omits them and
// warns. This occurs if clusters have different CRDs.
func (t *csvTable) printerFor(rows *Rows, kind, cluster string) Printer {
	headerLength := len(t.columnNames)
	p := &csvPrinter{t, rows, kind, cluster, t.mapColumns(rows)}
	if missing := t.columnNames[headerLength:]; len(missing) > 0 {
		Warnf(t.errOut, "%s: these columns are omitted, because the CSV header of another cluster lacks them: %s",
			cluster, strings.Join(missing, ", "))
		t.columnNames = t.columnNames[:headerLength]
	}
	return p
}

// mapColumns returns the index in columnNames of each column of a type. It appends missing columns. A type
// can have two columns of one name.
func (t *csvTable) mapColumns(rows *Rows) []int {
	var indexes []int
	for _, definition := range rows.Columns {
		name := strings.ToUpper(definition.Name)
		index := 0
		for index < len(t.columnNames) && (t.columnNames[index] != name || slices.Contains(indexes, index)) {
			index++
		}
		if index == len(t.columnNames) {
			t.columnNames = append(t.columnNames, name)
		}
		indexes = append(indexes, index)
	}
	return indexes
}

type csvPrinter struct {
	*csvTable
	rows          *Rows
	kind, cluster string
	columnIndexes []int // in the table's columns
}

func (p *csvPrinter) Print(o Object) error {
	obj, err := o.decode()
	if err != nil {
		return err
	}
	if !p.headerWritten {
		if err := p.out.Write(p.header); err != nil {
			return err
		}
		p.headerWritten = true
	}
	row := p.leadingCells(p.cluster, p.kind, obj.GetNamespace())
	cells := make([]string, len(p.columnNames))
	for i, value := range p.rows.Cells(obj, true) {
		if value != nil && i < len(p.columnIndexes) && p.columnIndexes[i] < len(cells) {
			cells[p.columnIndexes[i]] = fmt.Sprint(value)
		}
	}
	return p.out.Write(append(row, cells...))
}

func (p *csvPrinter) Flush() error {
	p.out.Flush()
	return p.out.Error()
}

func (p *csvPrinter) Close() error { return p.Flush() }

// WriteRow writes cells to a tab writer without control characters, and missing in place of empty cells. The
// tab writer keeps the first error for Flush.
func WriteRow(w io.Writer, missing string, cells ...string) {
	for i, cell := range cells {
		cells[i] = cmp.Or(Printable(cell), missing)
	}
	fmt.Fprintln(w, strings.Join(cells, "\t"))
}

// NewTablePrinter returns a printer of metav1.Table values. With every supported version of cli-runtime, it
// pads columns like kubectl 1.37: the length in bytes counts, also of the lines of a cell that are not
// printed.
func NewTablePrinter(options printers.PrintOptions) printers.ResourcePrinter {
	return &paddedTable{options: options, printer: printers.NewTablePrinter(options)}
}

type paddedTable struct {
	options printers.PrintOptions
	printer printers.ResourcePrinter
}

func (p *paddedTable) PrintObj(obj runtime.Object, w io.Writer) error {
	table, ok := obj.(*metav1.Table)
	if !ok {
		return p.printer.PrintObj(obj, w)
	}
	padded := *table
	padded.ColumnDefinitions = slices.Clone(table.ColumnDefinitions)
	padded.Rows = slices.Clone(table.Rows)
	lastPrinted := 0 // only the columns before it are padded
	for i, column := range table.ColumnDefinitions {
		if p.options.Wide || column.Priority == 0 {
			lastPrinted = i
		}
	}
	for i := range lastPrinted {
		p.padColumn(&padded, i)
	}
	return p.printer.PrintObj(&padded, w)
}

// padColumn makes a column as wide as the longest cell in it has bytes. It changes the first printed line.
func (p *paddedTable) padColumn(table *metav1.Table, column int) {
	maxLength, isWider := 0, false // than its characters
	for _, row := range table.Rows {
		if column < len(row.Cells) {
			s, _ := row.Cells[column].(string)
			maxLength = max(maxLength, len(s))
			isWider = isWider || firstLine(s) != s || utf8.RuneCountInString(s) != len(s)
		}
	}
	switch {
	case !isWider: // the printer makes the column wide enough
	case !p.options.NoHeaders:
		definition := &table.ColumnDefinitions[column]
		definition.Name += strings.Repeat(" ", max(maxLength-len(strings.ToUpper(definition.Name)), 0))
	case column < len(table.Rows[0].Cells):
		row := &table.Rows[0]
		row.Cells = slices.Clone(row.Cells)
		s, _ := row.Cells[column].(string)
		row.Cells[column] = firstLine(s) + strings.Repeat(" ", maxLength-len(s))
	}
}

// firstLine returns the part of a cell that the printer prints.
func firstLine(s string) string {
	if end := strings.IndexAny(s, "\f\n\r"); end >= 0 {
		return s[:end] + "..."
	}
	return s
}
