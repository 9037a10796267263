package readapi

import (
	"bytes"
	"encoding/json"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/util/jsonpath"

	"github.com/crdcache/crdcache/discovery/crd"
)

// tabulator makes the rows of a table. It is for one request: the paths are not safe for concurrent use.
type tabulator struct {
	include metav1.IncludeObjectPolicy
	headers []metav1.TableColumnDefinition // nil after the first use
	columns []column
}

// column is a printer column and its path, which client-go evaluates as a kube-apiserver does, quirks included.
type column struct {
	crd.Column
	path *jsonpath.JSONPath
}

// ageOnly are the columns of types that declare none.
var ageOnly = []crd.Column{{Name: "Age", Type: "date", Description: metaDocs["creationTimestamp"], JSONPath: ".metadata.creationTimestamp"}}

var metaDocs = metav1.ObjectMeta{}.SwaggerDoc()

// newTabulator returns a tabulator. Columns from the first one on that has a broken path are left out, as on a
// kube-apiserver.
func newTabulator(columns []crd.Column, include string) (*tabulator, error) {
	t := &tabulator{include: metav1.IncludeObjectPolicy(include)}
	switch t.include {
	case "":
		t.include = metav1.IncludeMetadata
	case metav1.IncludeMetadata, metav1.IncludeObject, metav1.IncludeNone:
	default:
		err := field.Invalid(field.NewPath("includeObject"), include, "must be 'Metadata', 'Object', 'None', or empty")
		return nil, apierrors.NewBadRequest("Unable to convert to Table as requested: " + err.Error())
	}
	if len(columns) == 0 {
		columns = ageOnly
	}
	t.headers = []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name", Description: metaDocs["name"]}}
	for _, c := range columns {
		path := jsonpath.New(c.Name).AllowMissingKeys(true)
		if err := path.Parse("{" + c.JSONPath + "}"); err != nil {
			break
		}
		if c.Description == "" {
			c.Description = "Custom resource definition column (in JSONPath format): " + c.JSONPath
		}
		t.columns = append(t.columns, column{Column: c, path: path})
		t.headers = append(t.headers, metav1.TableColumnDefinition{
			Name: c.Name, Type: c.Type, Format: c.Format, Description: c.Description, Priority: c.Priority,
		})
	}
	return t, nil
}

// appendHead appends what comes before the rows. Only the first table of a watch has headers.
func (t *tabulator) appendHead(dst []byte, m metav1.ListMeta) ([]byte, error) {
	dst = append(dst, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":`...)
	dst, err := appendValue(dst, m)
	if err != nil {
		return nil, err
	}
	dst = append(dst, `,"columnDefinitions":`...)
	dst, err = appendValue(dst, t.headers)
	t.headers = nil
	return append(dst, `,"rows":[`...), err
}

// appendRow appends the row of an object.
func (t *tabulator) appendRow(dst []byte, content map[string]any) ([]byte, error) {
	name := ""
	if metadata, ok := content["metadata"].(map[string]any); ok {
		name, _ = metadata["name"].(string)
	}
	row := metav1.TableRow{Cells: make([]any, 0, 1+len(t.columns))}
	row.Cells = append(row.Cells, name)
	for _, c := range t.columns {
		row.Cells = append(row.Cells, c.cell(content))
	}
	switch t.include {
	case metav1.IncludeMetadata:
		m, err := partial(content)
		if err != nil {
			return nil, err
		}
		row.Object = runtime.RawExtension{Object: m}
	case metav1.IncludeObject:
		raw, err := json.Marshal(content)
		if err != nil {
			return nil, err
		}
		row.Object = runtime.RawExtension{Raw: raw}
	}
	return appendValue(dst, row)
}

// cell is nil where there is nothing, or where the value is not of the column's type.
func (c column) cell(content map[string]any) any {
	results, err := c.path.FindResults(content)
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
