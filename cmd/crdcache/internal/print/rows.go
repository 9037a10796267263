package print

import (
	"slices"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/display"
	"github.com/crdcache/crdcache/internal/naming"
)

// Rows are the columns of a type and the cells of its objects.
type Rows struct {
	// Columns start with the name.
	Columns []metav1.TableColumnDefinition
	// Cells returns the cells of an object, which the caller may append to. With timestamps, they replace
	// ages if they are known. Trailing cells can be missing. A nil cell is empty.
	Cells func(obj *unstructured.Unstructured, timestamps bool) []any
	// FromServer is set if a server has printed the cells.
	FromServer bool
}

// NewRows returns the rows with the columns of a CRD and ages at the time now, without control characters.
// Without columns they have the age.
func NewRows(declared []crd.Column, now func() time.Time) *Rows {
	columns := display.NewColumns(declared)
	return &Rows{Columns: display.Definitions(columns),
		Cells: func(obj *unstructured.Unstructured, timestamps bool) []any {
			cells := append(make([]any, 0, 1+len(columns)), escapeCell(obj.GetName()))
			for _, c := range columns {
				if timestamps {
					cells = append(cells, escapeCell(c.Value(obj.Object)))
				} else {
					cells = append(cells, escapeCell(c.Cell(obj.Object, now())))
				}
			}
			return cells
		}}
}

// NewServerRows returns rows that a server has printed, with ages only. cells returns the row of an object.
func NewServerRows(columns []metav1.TableColumnDefinition,
	cells func(*unstructured.Unstructured) []any) *Rows {
	escapedCells := func(obj *unstructured.Unstructured, _ bool) []any {
		return naming.Map(cells(obj), escapeCell)
	}
	return &Rows{Columns: columns, Cells: escapedCells, FromServer: true}
}

func textColumn(name string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "string"}
}

// WithLabelColumns adds the label columns to rows. As in kubectl, the header is the part of the label's name
// after the slash.
func (s Style) WithLabelColumns(rows *Rows) *Rows {
	if len(s.LabelColumns) == 0 && !s.ShowLabels {
		return rows
	}
	columns := slices.Clone(rows.Columns)
	for _, name := range s.LabelColumns {
		columns = append(columns, textColumn(Printable(name[strings.LastIndex(name, "/")+1:])))
	}
	if s.ShowLabels {
		columns = append(columns, textColumn("Labels"))
	}
	return &Rows{Columns: columns, Cells: func(obj *unstructured.Unstructured, timestamps bool) []any {
		cells := rows.Cells(obj, timestamps)
		for len(cells) < len(rows.Columns) {
			cells = append(cells, nil)
		}
		objectLabels := obj.GetLabels()
		for _, name := range s.LabelColumns {
			cells = append(cells, Printable(objectLabels[name]))
		}
		if s.ShowLabels {
			cells = append(cells, Printable(labels.FormatLabels(objectLabels)))
		}
		return cells
	}}
}

// WithCluster adds a column with the cluster, and optionally a column with the namespace.
func WithCluster(rows *Rows, cluster string, withNamespace bool) *Rows {
	columns := []metav1.TableColumnDefinition{textColumn("Cluster")}
	if withNamespace {
		columns = append(columns, textColumn("Namespace"))
	}
	return &Rows{Columns: append(columns, rows.Columns...),
		Cells: func(obj *unstructured.Unstructured, timestamps bool) []any {
			cells := []any{Printable(cluster)}
			if withNamespace {
				cells = append(cells, obj.GetNamespace())
			}
			return append(cells, rows.Cells(obj, timestamps)...)
		}}
}

func escapeCell(cell any) any {
	if text, ok := cell.(string); ok {
		return printable(text)
	}
	return display.DecodedCell(cell)
}

// printable replaces control characters such as CSI. It keeps those that cli-runtime's table printer handles
// like kubectl: ESC, line breaks and tabs.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !strings.ContainsRune("\x1b\n\r\f\v\t", r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
