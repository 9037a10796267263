package print

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// labelled are rows with columns for labels after those of the type.
type labelled struct {
	Rows
	columns []string
	all     bool // another column, with all labels
}

// Rows adds to the columns of a type those for labels.
func (s Style) Rows(rows Rows) Rows {
	if len(s.LabelColumns) == 0 && !s.ShowLabels {
		return rows
	}
	return labelled{rows, s.LabelColumns, s.ShowLabels}
}

// Definitions implements output.Rows. Headers are the last parts of the names of labels, as kubectl get has them.
func (l labelled) Definitions() []metav1.TableColumnDefinition {
	definitions := append([]metav1.TableColumnDefinition(nil), l.Rows.Definitions()...)
	for _, name := range l.columns {
		definitions = append(definitions, metav1.TableColumnDefinition{Name: Printable(name[strings.LastIndex(name, "/")+1:]), Type: "string"})
	}
	if l.all {
		definitions = append(definitions, metav1.TableColumnDefinition{Name: "Labels", Type: "string"})
	}
	return definitions
}

// Cells implements output.Rows.
func (l labelled) Cells(obj *unstructured.Unstructured) []any { return l.add(l.Rows.Cells(obj), obj) }

// Values implements output.Rows.
func (l labelled) Values(obj *unstructured.Unstructured) []any { return l.add(l.Rows.Values(obj), obj) }

// add appends the labels of an object to its cells.
func (l labelled) add(cells []any, obj *unstructured.Unstructured) []any {
	cells = append([]any(nil), cells...)
	for len(cells) < len(l.Rows.Definitions()) {
		cells = append(cells, nil)
	}
	of := obj.GetLabels()
	for _, name := range l.columns {
		cells = append(cells, Printable(of[name]))
	}
	if l.all {
		cells = append(cells, Printable(labels.FormatLabels(of)))
	}
	return cells
}
