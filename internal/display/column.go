// Package display prepares objects for people: it evaluates the printer columns of CustomResourceDefinitions
// like a kube-apiserver, replaces confidential values, and compares two states of an object.
package display

import (
	"bytes"
	"reflect"
	"strconv"

	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/jsonpath"
)

// ColumnDefinition is the declaration of a column in a CRD.
type ColumnDefinition struct {
	Name        string
	Type        string // integer, number, string, boolean or date
	Format      string
	Description string
	Priority    int32 // above 0 only in wide tables
	JSONPath    string
}

// Column is a printer column. It uses client-go's jsonpath like a kube-apiserver, to reproduce its quirks. A
// Column must not be used concurrently.
type Column struct {
	ColumnDefinition
	path *jsonpath.JSONPath
}

// defaultColumns are the columns of a version that declares none.
var defaultColumns = []ColumnDefinition{{
	Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp",
	Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
}}

// NewColumns parses the paths. A column with an invalid path ends the columns, as in a kube-apiserver, which
// accepts such definitions. Without declared columns, the only column is the age.
func NewColumns(declared []ColumnDefinition) []Column {
	if len(declared) == 0 {
		declared = defaultColumns
	}
	var columns []Column
	for _, c := range declared {
		path := jsonpath.New(c.Name).AllowMissingKeys(true)
		if err := path.Parse("{" + c.JSONPath + "}"); err != nil {
			break
		}
		columns = append(columns, Column{ColumnDefinition: c, path: path})
	}
	return columns
}

// Cell returns the cell of an object as a kube-apiserver does: nil if there is no value or its type differs
// from the column's. A date is returned as its age.
func (c Column) Cell(object map[string]any) any {
	value := c.Value(object)
	if text, ok := value.(string); ok && c.Type == "date" {
		return age(text)
	}
	return value
}

// Value returns Cell, but dates unchanged.
func (c Column) Value(object map[string]any) any {
	results, err := c.path.FindResults(object)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return nil
	}
	value := results[0][0].Interface()
	if c.Type == "string" {
		var text bytes.Buffer
		if err := c.path.PrintResults(&text, []reflect.Value{reflect.ValueOf(value)}); err != nil {
			return nil
		}
		return text.String()
	}
	return parseColumnValue(c.Type, value)
}

func parseColumnValue(columnType string, value any) any {
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
			return v
		}
	}
	return nil
}

// DecodedCell returns a cell as a client decodes it: a number without a fraction becomes an int64, if it is
// one in JSON.
func DecodedCell(cell any) any {
	number, ok := cell.(float64)
	if !ok {
		return cell
	}
	integer, err := strconv.ParseInt(strconv.FormatFloat(number, 'f', -1, 64), 10, 64)
	if err != nil {
		return number
	}
	return integer
}

func age(timestamp string) string {
	var t metav1.Time
	if err := t.UnmarshalQueryParameter(timestamp); err != nil {
		return "<invalid>"
	}
	return metatable.ConvertToHumanReadableDateType(t)
}
