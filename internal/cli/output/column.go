package output

import (
	"bytes"
	"reflect"
	"strings"
	"unicode"

	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"

	"github.com/crdcache/crdcache/discovery/crd"
)

// column is a printer column and its path. client-go's jsonpath is what the API server evaluates them
// with, so its quirks are wanted here.
type column struct {
	crd.Column
	path *jsonpath.JSONPath
}

// ageOnly are the columns of a CRD that declares none, which are also used for types without a CRD.
var ageOnly = []crd.Column{{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"}}

// newColumns parses the paths. A column whose path cannot be parsed ends the columns, as on the API server,
// which accepts CRDs with such columns. Without any, the age is the only one.
func newColumns(declared []crd.Column) []column {
	if len(declared) == 0 {
		declared = ageOnly
	}
	var columns []column
	for _, c := range declared {
		path := jsonpath.New(c.Name).AllowMissingKeys(true)
		if err := path.Parse("{" + c.JSONPath + "}"); err != nil {
			break
		}
		columns = append(columns, column{Column: c, path: path})
	}
	return columns
}

// cell is what the API server puts into the column for obj: nil where there is nothing or where the value
// is not of the column's type.
func (c column) cell(obj *unstructured.Unstructured) any {
	value := c.value(obj)
	if text, ok := value.(string); ok && c.Type == "date" {
		return age(text)
	}
	return value
}

// value is cell, with dates as the object has them.
func (c column) value(obj *unstructured.Unstructured) any {
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
			return printable(v)
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
