package print

import (
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
)

// NewTablePrinter returns a printer of metav1.Table values, which prints as kubectl 1.37 does with every
// supported version of cli-runtime: a cell of several lines widens its column by its whole length, although
// only the first line is printed.
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
	for i := range p.paddedColumns(table) {
		p.pad(&padded, i)
	}
	return p.printer.PrintObj(&padded, w)
}

// paddedColumns returns the number of leading columns that are followed by a printed one.
func (p *paddedTable) paddedColumns(table *metav1.Table) int {
	if p.options.ShowLabels || len(p.options.ColumnLabels) > 0 {
		return len(table.ColumnDefinitions)
	}
	last := 0
	for i, column := range table.ColumnDefinitions {
		if p.options.Wide || column.Priority == 0 {
			last = i
		}
	}
	return last
}

// pad makes a column as wide as the longest string in it. It changes the first printed line.
func (p *paddedTable) pad(table *metav1.Table, column int) {
	longest, hasLines := 0, false
	for _, row := range table.Rows {
		if column < len(row.Cells) {
			s, _ := row.Cells[column].(string)
			longest, hasLines = max(longest, len(s)), hasLines || firstLine(s) != s
		}
	}
	switch {
	case !hasLines: // the printer makes the column wide enough
	case !p.options.NoHeaders:
		definition := &table.ColumnDefinitions[column]
		definition.Name = fmt.Sprintf("%-*s", longest, definition.Name)
	case column < len(table.Rows[0].Cells):
		row := &table.Rows[0]
		row.Cells = slices.Clone(row.Cells)
		s, _ := row.Cells[column].(string)
		row.Cells[column] = firstLine(s) + strings.Repeat(" ", longest-len(s))
	}
}

// firstLine returns the text that the printer shows of a cell.
func firstLine(s string) string {
	if end := strings.IndexAny(s, "\f\n\r"); end >= 0 {
		return s[:end] + "..."
	}
	return s
}
