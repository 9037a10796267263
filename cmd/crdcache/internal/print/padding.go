package print

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
)

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
	for i := range p.countPaddedColumns(table) {
		p.padColumn(&padded, i)
	}
	return p.printer.PrintObj(&padded, w)
}

// countPaddedColumns returns the number of leading columns that are followed by a printed one.
func (p *paddedTable) countPaddedColumns(table *metav1.Table) int {
	if p.options.ShowLabels || len(p.options.ColumnLabels) > 0 {
		return len(table.ColumnDefinitions)
	}
	lastPrinted := 0
	for i, column := range table.ColumnDefinitions {
		if p.options.Wide || column.Priority == 0 {
			lastPrinted = i
		}
	}
	return lastPrinted
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
