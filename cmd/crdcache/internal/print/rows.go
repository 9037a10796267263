package print

import (
	"slices"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/display"
)

// RowFormatter defines the columns of a type and returns the cells of objects.
type RowFormatter interface {
	// Definitions returns the columns, starting with the name.
	Definitions() []metav1.TableColumnDefinition
	// Cells returns the cells of an object. Trailing cells can be missing. A nil cell is empty.
	Cells(obj *unstructured.Unstructured) []any
	// Values returns Cells with timestamps instead of ages, if they are known.
	Values(obj *unstructured.Unstructured) []any
}

// crdRows formats the columns of a CRD, without control characters.
type crdRows struct{ columns []display.Column }

// NewRows returns the formatter for the columns of a CRD. Without columns it prints the age.
func NewRows(columns []crd.Column) RowFormatter { return crdRows{display.NewColumns(columns)} }

func (r crdRows) Definitions() []metav1.TableColumnDefinition { return display.Definitions(r.columns) }

func (r crdRows) Cells(obj *unstructured.Unstructured) []any { return r.row(obj, display.Column.Cell) }

func (r crdRows) Values(obj *unstructured.Unstructured) []any {
	return r.row(obj, display.Column.Value)
}

func (r crdRows) row(obj *unstructured.Unstructured, cell func(display.Column, map[string]any) any) []any {
	cells := make([]any, 0, 1+len(r.columns))
	cells = append(cells, escapeCell(obj.GetName()))
	for _, c := range r.columns {
		cells = append(cells, escapeCell(cell(c, obj.Object)))
	}
	return cells
}

// serverRows formats rows that a server has printed.
type serverRows struct {
	definitions []metav1.TableColumnDefinition
	cells       func(*unstructured.Unstructured) []any
}

// NewServerRows returns the formatter of rows that a server has printed. cells returns the row of an object.
func NewServerRows(definitions []metav1.TableColumnDefinition,
	cells func(*unstructured.Unstructured) []any) RowFormatter {
	return serverRows{definitions, cells}
}

func (r serverRows) Definitions() []metav1.TableColumnDefinition { return r.definitions }

func (r serverRows) Cells(obj *unstructured.Unstructured) []any {
	cells := slices.Clone(r.cells(obj))
	for i, cell := range cells {
		cells[i] = escapeCell(cell)
	}
	return cells
}

// Values implements RowFormatter. It returns ages, because the timestamps are unknown.
func (r serverRows) Values(obj *unstructured.Unstructured) []any { return r.Cells(obj) }

type labelRows struct {
	RowFormatter
	labelNames    []string
	showAllLabels bool // a column with all labels
}

// WithLabelColumns adds the label columns to rows.
func (s Style) WithLabelColumns(rows RowFormatter) RowFormatter {
	if len(s.LabelColumns) == 0 && !s.ShowLabels {
		return rows
	}
	return labelRows{rows, s.LabelColumns, s.ShowLabels}
}

// Definitions implements RowFormatter. As in kubectl, the header is the part of the label's name after the
// slash.
func (l labelRows) Definitions() []metav1.TableColumnDefinition {
	definitions := append([]metav1.TableColumnDefinition(nil), l.RowFormatter.Definitions()...)
	for _, name := range l.labelNames {
		definitions = append(definitions,
			metav1.TableColumnDefinition{Name: Printable(name[strings.LastIndex(name, "/")+1:]),
				Type: "string"})
	}
	if l.showAllLabels {
		definitions = append(definitions, metav1.TableColumnDefinition{Name: "Labels", Type: "string"})
	}
	return definitions
}

func (l labelRows) Cells(obj *unstructured.Unstructured) []any {
	return l.appendLabels(l.RowFormatter.Cells(obj), obj)
}

func (l labelRows) Values(obj *unstructured.Unstructured) []any {
	return l.appendLabels(l.RowFormatter.Values(obj), obj)
}

func (l labelRows) appendLabels(cells []any, obj *unstructured.Unstructured) []any {
	cells = append([]any(nil), cells...)
	for len(cells) < len(l.RowFormatter.Definitions()) {
		cells = append(cells, nil)
	}
	objectLabels := obj.GetLabels()
	for _, name := range l.labelNames {
		cells = append(cells, Printable(objectLabels[name]))
	}
	if l.showAllLabels {
		cells = append(cells, Printable(labels.FormatLabels(objectLabels)))
	}
	return cells
}

type clusterRows struct {
	RowFormatter
	cluster       string
	withNamespace bool
}

// WithCluster adds a column with the cluster, and optionally a column with the namespace.
func WithCluster(rows RowFormatter, cluster string, withNamespace bool) RowFormatter {
	return clusterRows{rows, Printable(cluster), withNamespace}
}

func (r clusterRows) Definitions() []metav1.TableColumnDefinition {
	definitions := []metav1.TableColumnDefinition{{Name: "Cluster", Type: "string"}}
	if r.withNamespace {
		definitions = append(definitions, metav1.TableColumnDefinition{Name: "Namespace", Type: "string"})
	}
	return append(definitions, r.RowFormatter.Definitions()...)
}

func (r clusterRows) Cells(obj *unstructured.Unstructured) []any {
	cells := []any{r.cluster}
	if r.withNamespace {
		cells = append(cells, obj.GetNamespace())
	}
	return append(cells, r.RowFormatter.Cells(obj)...)
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
