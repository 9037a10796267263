package report

import (
	"fmt"
	"strings"
)

// table is one table of the report: a row for each subject, a column for each metric.
type table struct {
	experiment, size string
	objects          int
	rows             []row
	columns          []column
}

// row is a subject under the name that the report gives it.
type row struct{ subject, title string }

// column is a metric, and what its figures are compared with.
type column struct {
	title, metric string
	// base is the subject to compare with; empty means none. The ratio is how many times less a subject needs
	// than base, or, with of set, how many times as much.
	base string
	of   bool
	// less is the key of a figure to take off, of which only the experiment, the subject and the metric count: the
	// column shows what is left.
	less Key
}

// write writes the table, without rows and columns that have nothing in them. It reports whether anything was
// left.
func (t table) write(b *strings.Builder, r *Result) bool {
	columns := t.filled(r)
	var lines []string
	for _, row := range t.rows {
		cells := []string{row.title}
		empty := true
		for _, c := range columns {
			cell := t.cell(r, row.subject, c)
			empty = empty && cell == missing
			cells = append(cells, cell)
		}
		if !empty {
			lines = append(lines, line(cells))
		}
	}
	if len(lines) == 0 {
		return false
	}
	titles := []string{""}
	for _, c := range columns {
		titles = append(titles, c.title)
	}
	fmt.Fprintln(b, line(titles))
	fmt.Fprintln(b, "|---|"+strings.Repeat("---:|", len(columns)))
	for _, l := range lines {
		fmt.Fprintln(b, l)
	}
	fmt.Fprintln(b)
	return true
}

// filled returns the columns that some row has a figure for.
func (t table) filled(r *Result) []column {
	var columns []column
	for _, c := range t.columns {
		for _, row := range t.rows {
			if _, ok := r.Get(t.key(row.subject, c)); ok {
				columns = append(columns, c)
				break
			}
		}
	}
	return columns
}

func (t table) key(subject string, c column) Key {
	return Key{Experiment: t.experiment, Size: t.size, Objects: t.objects, Subject: subject, Metric: c.metric}
}

// missing is the cell without a figure.
const missing = "–"

func (t table) cell(r *Result, subject string, c column) string {
	value, ok := t.value(r, subject, c)
	if !ok {
		return missing
	}
	text := quantity(c.metric, value)
	base, ok := t.value(r, c.base, c)
	if !ok || subject == c.base || digits(base) == "0" || digits(value) == "0" {
		return text // there is no ratio to nothing
	}
	if c.of {
		return text + " (" + times(value/base) + ")"
	}
	return text + " (" + times(base/value) + ")"
}

// value returns the figure of a cell, less what is to be taken off: never less than nothing.
func (t table) value(r *Result, subject string, c column) (float64, bool) {
	f, ok := r.Get(t.key(subject, c))
	if !ok || c.less == (Key{}) {
		return f.Median, ok
	}
	off := c.less
	off.Size, off.Objects = t.size, t.objects
	less, ok := r.Get(off)
	return max(f.Median-less.Median, 0), ok && subject != off.Subject
}

func line(cells []string) string { return "| " + strings.Join(cells, " | ") + " |" }
