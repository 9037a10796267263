package output

import (
	"bytes"
	"io"
	"reflect"
	"strings"
	"unicode"

	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"

	"github.com/crdcache/crdcache/discovery/crd"
)

// Table prints a table of one type with the columns of its CRD, as kubectl get does. Only the cells are
// kept until Close, because the widths of the columns depend on all of them.
type Table struct {
	w       io.Writer
	options printers.PrintOptions
	columns []column
	table   metav1.Table
}

// column is a printer column and its path. client-go's jsonpath is what the API server evaluates them
// with, so its quirks are wanted here.
type column struct {
	crd.Column
	path *jsonpath.JSONPath
}

// ageOnly are the columns of a CRD that declares none, which are also used for types without a CRD.
var ageOnly = []crd.Column{{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"}}

// NewTable returns a table with these columns, or with the age alone when there are none. A column whose
// path cannot be parsed ends the columns, as on the API server, which accepts CRDs with such columns.
func NewTable(w io.Writer, columns []crd.Column, options printers.PrintOptions) *Table {
	if len(columns) == 0 {
		columns = ageOnly
	}
	t := &Table{w: w, options: options}
	t.table.ColumnDefinitions = []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name"}}
	for _, c := range columns {
		path := jsonpath.New(c.Name).AllowMissingKeys(true)
		if err := path.Parse("{" + c.JSONPath + "}"); err != nil {
			break
		}
		t.columns = append(t.columns, column{Column: c, path: path})
		t.table.ColumnDefinitions = append(t.table.ColumnDefinitions, metav1.TableColumnDefinition{
			Name: c.Name, Type: c.Type, Format: c.Format, Priority: c.Priority,
		})
	}
	return t
}

// Print implements Printer.
func (t *Table) Print(obj *unstructured.Unstructured) error {
	cells := make([]any, 0, 1+len(t.columns))
	cells = append(cells, obj.GetName())
	for _, c := range t.columns {
		cells = append(cells, c.cell(obj))
	}
	t.table.Rows = append(t.table.Rows, metav1.TableRow{Cells: cells, Object: runtime.RawExtension{Object: t.identity(obj)}})
	return nil
}

// identity is the part of an object that the table printer looks at.
func (t *Table) identity(obj *unstructured.Unstructured) runtime.Object {
	m := &metav1.PartialObjectMetadata{}
	m.SetName(obj.GetName())
	m.SetNamespace(obj.GetNamespace())
	return m
}

// Close implements Printer: it writes the table, or nothing when it has no rows.
func (t *Table) Close() error {
	if len(t.table.Rows) == 0 {
		return nil
	}
	w := printers.GetNewTabWriter(t.w)
	if err := printers.NewTablePrinter(t.options).PrintObj(&t.table, w); err != nil {
		return err
	}
	return w.Flush()
}

// cell is what the API server puts into the column for obj: nil where there is nothing or where the value
// is not of the column's type.
func (c column) cell(obj *unstructured.Unstructured) any {
	results, err := c.path.FindResults(obj.Object)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return nil
	}
	value := results[0][0].Interface()
	if c.Type == "string" {
		var text bytes.Buffer
		if err := c.path.PrintResults(&text, []reflect.Value{reflect.ValueOf(value)}); err != nil {
			return nil
		}
		return printable(text.String())
	}
	return typedCell(c.Type, value)
}

func typedCell(columnType string, value any) any {
	switch v := value.(type) {
	case int64:
		switch columnType {
		case "integer":
			return v
		case "number":
			return float64(v)
		}
	case float64:
		switch columnType {
		case "integer":
			return int64(v)
		case "number":
			return v
		}
	case bool:
		if columnType == "boolean" {
			return v
		}
	case string:
		if columnType == "date" {
			return age(v)
		}
	}
	return nil
}

// age turns a timestamp into how long ago it was.
func age(timestamp string) string {
	var t metav1.Time
	if err := t.UnmarshalQueryParameter(timestamp); err != nil {
		return "<invalid>"
	}
	return metatable.ConvertToHumanReadableDateType(t)
}

// printable replaces the control characters that the table printer lets through to the terminal: among
// them is one that starts escape sequences as ESC does. The printer itself shows ESC, cuts at line breaks and
// takes tabs for the ends of cells, as kubectl does.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !strings.ContainsRune("\x1b\n\r\f\v\t", r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
