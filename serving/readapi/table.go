package readapi

import (
	"cmp"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdcache/crdcache/internal/display"
)

// tabulator builds the rows of a table. It serves one request, because columns are not safe for concurrent
// use.
type tabulator struct {
	version       string // the apiVersion of the table and of its metadata
	includeObject metav1.IncludeObjectPolicy
	headers       []metav1.TableColumnDefinition // nil after the first table
	columns       []display.Column
	now           func() time.Time
	// printCells replaces columns if it is set.
	printCells func(object map[string]any) []any
}

var metaDocs = metav1.ObjectMeta{}.SwaggerDoc()

// initTable prepares the encoder for tables. Like a kube-apiserver it drops the first column with an invalid
// path and all later ones.
func (e *encoder) initTable() error {
	options := e.resource.options
	t := &tabulator{version: e.form.version, includeObject: metav1.IncludeObjectPolicy(e.includeObject),
		now: options.Now}
	switch t.includeObject {
	case "":
		t.includeObject = metav1.IncludeMetadata
	case metav1.IncludeMetadata, metav1.IncludeObject, metav1.IncludeNone:
	default:
		err := field.Invalid(field.NewPath("includeObject"), e.includeObject,
			"must be 'Metadata', 'Object', 'None', or empty")
		return apierrors.NewBadRequest("Unable to convert to Table as requested: " + err.Error())
	}
	t.columns = display.NewColumns(e.resource.version.Columns)
	t.headers = display.Definitions(t.columns)
	t.headers[0].Description = metaDocs["name"]
	for i, c := range t.columns {
		t.headers[i+1].Description = cmp.Or(c.Description,
			"Custom resource definition column (in JSONPath format): "+c.JSONPath)
	}
	if options.Table != nil {
		if columns, cells := options.Table(e.resource.typ.GroupResource()); len(columns) > 0 {
			t.headers, t.printCells = columns, cells
		}
	}
	e.table = t
	return nil
}

// appendHead appends the part of a table before its rows. Only the first table of a watch has headers.
func (t *tabulator) appendHead(dst []byte, m listMeta) ([]byte, error) {
	dst = append(append(dst, `{"kind":"Table","apiVersion":"`...), t.version...)
	dst = append(dst, `","metadata":`...)
	dst, err := appendValue(dst, m)
	if err != nil {
		return nil, err
	}
	dst = append(dst, `,"columnDefinitions":`...)
	dst, err = appendValue(dst, t.headers)
	t.headers = nil
	return append(dst, `,"rows":[`...), err
}

func (t *tabulator) cells(content map[string]any) []any {
	if t.printCells != nil {
		return t.printCells(content)
	}
	name := ""
	if metadata, ok := content["metadata"].(map[string]any); ok {
		name, _ = metadata["name"].(string)
	}
	cells := make([]any, 0, 1+len(t.columns))
	cells = append(cells, name)
	for _, c := range t.columns {
		cells = append(cells, c.Cell(content, t.now()))
	}
	return cells
}

func (t *tabulator) appendRow(dst []byte, content map[string]any) ([]byte, error) {
	row := metav1.TableRow{Cells: t.cells(content)}
	switch t.includeObject {
	case metav1.IncludeMetadata:
		m, err := partialObjectMetadata(content)
		if err != nil {
			return nil, err
		}
		m.APIVersion = t.version
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
