// Package printcolumn evaluates the printer columns of CustomResourceDefinitions as a kube-apiserver does.
package printcolumn

import (
	"bytes"
	"reflect"
	"strconv"

	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/jsonpath"
)

// Definition is what a CRD declares of a column.
type Definition struct {
	Name        string
	Type        string // integer, number, string, boolean or date
	Format      string
	Description string
	Priority    int32 // above 0 only in wide tables
	JSONPath    string
}

// Column is a printer column and its path. client-go's jsonpath is what a kube-apiserver evaluates them with,
// so its quirks are wanted here. A Column must not be used concurrently.
type Column struct {
	Definition
	path *jsonpath.JSONPath
}

// ageOnly are the columns of a version that declares none.
var ageOnly = []Definition{{
	Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp",
	Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
}}

// New parses the paths. A column whose path cannot be parsed ends the columns, as on a kube-apiserver, which
// accepts definitions with such columns. Without any declared, the age is the only one.
func New(declared []Definition) []Column {
	if len(declared) == 0 {
		declared = ageOnly
	}
	var columns []Column
	for _, c := range declared {
		path := jsonpath.New(c.Name).AllowMissingKeys(true)
		if err := path.Parse("{" + c.JSONPath + "}"); err != nil {
			break
		}
		columns = append(columns, Column{Definition: c, path: path})
	}
	return columns
}

// Cell is what a kube-apiserver puts into the column for an object: nil where there is nothing or where the
// value is not of the column's type. Dates are how long ago they were.
func (c Column) Cell(object map[string]any) any {
	value := c.Value(object)
	if text, ok := value.(string); ok && c.Type == "date" {
		return age(text)
	}
	return value
}

// Value is Cell, with dates as the object has them.
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
	return typed(c.Type, value)
}

func typed(columnType string, value any) any {
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

// Decoded is a cell as a client has it that reads a table: a number without a fraction is an int64, if it is
// one in JSON.
func Decoded(cell any) any {
	number, ok := cell.(float64)
	if !ok {
		return cell
	}
	whole, err := strconv.ParseInt(strconv.FormatFloat(number, 'f', -1, 64), 10, 64)
	if err != nil {
		return number
	}
	return whole
}

// age turns a timestamp into how long ago it was.
func age(timestamp string) string {
	var t metav1.Time
	if err := t.UnmarshalQueryParameter(timestamp); err != nil {
		return "<invalid>"
	}
	return metatable.ConvertToHumanReadableDateType(t)
}
