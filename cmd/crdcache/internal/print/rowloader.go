package print

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
)

// Definitions returns the CRD of a type.
type Definitions func(ctx context.Context, of schema.GroupResource) (*crd.Definition, error)

// definitionRows returns the columns of a type's CRD, or nil if the type has no CRD.
func (l *RowLoader) definitionRows(ctx context.Context, r discovery.Resource) (RowFormatter, error) {
	if !strings.Contains(r.GVR.Group, ".") {
		return nil, nil // CRD groups contain a dot
	}
	definition, err := l.definitions(ctx, r.GVR.GroupResource())
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	version, _ := definition.Version(r.GVR.Version)
	return NewRows(version.Columns), nil
}

const (
	// timeout bounds the wait for all columns. It is independent of --timeout, which can be used up by then.
	timeout = 30 * time.Second
	// parallel bounds the concurrent requests.
	parallel = 10
)

// RowLoader loads the row formatters of types.
type RowLoader struct {
	definitions Definitions
	rest        rest.Interface // nil if the server is not asked for rows
	namespace   string
	selectors   metav1.ListOptions
	errOut      io.Writer
	names       map[schema.GroupVersionResource][]string
}

// LimitTo limits the objects of a type that will be printed to these names.
func (l *RowLoader) LimitTo(gvr schema.GroupVersionResource, names []string) {
	if l.names == nil {
		l.names = map[schema.GroupVersionResource][]string{}
	}
	l.names[gvr] = names
}

// NewRowLoader returns a loader for a server. namespace (empty means all) and selectors select the objects
// that will be printed. Warnings go to errOut.
func NewRowLoader(config *rest.Config, httpClient *http.Client, definitions Definitions, namespace string,
	selectors metav1.ListOptions, errOut io.Writer) (*RowLoader, error) {
	plain, err := NewPlainClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	return &RowLoader{definitions: definitions, rest: plain, namespace: namespace, selectors: selectors,
		errOut: errOut}, nil
}

// NewDefinitionLoader returns a loader that knows only the columns of CRDs.
func NewDefinitionLoader(definitions Definitions, errOut io.Writer) *RowLoader {
	return &RowLoader{definitions: definitions, errOut: errOut}
}

// Load returns the row formatter of each type. If the columns of a type cannot be read, it warns and returns
// name and age.
func (l *RowLoader) Load(ctx context.Context, types []discovery.Resource) []RowFormatter {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	rows, errs := make([]RowFormatter, len(types)), make([]error, len(types))
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, r := range types {
		// Each goroutine writes to its own element and ends with its requests, which end with ctx.
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			rows[i], errs[i] = l.load(ctx, r)
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			fmt.Fprintf(l.errOut,
				"warning: %s is shown with name and age only, because its columns cannot be read: %s\n",
				types[i], strings.Join(strings.Fields(err.Error()), " "))
		}
		if rows[i] == nil {
			rows[i] = NewRows(nil)
		}
	}
	return rows
}

// objectRequest is a request for objects: by selectors, or one object by name.
type objectRequest struct {
	metav1.ListOptions
	name string
}

// selections returns the requests for the printed objects of a type. Named objects are read with get if their
// namespace is known, because the user can lack permission to list.
func (l *RowLoader) selections(r discovery.Resource) []objectRequest {
	names, ok := l.names[r.GVR]
	if !ok {
		return []objectRequest{{ListOptions: l.selectors}}
	}
	selections := make([]objectRequest, len(names))
	for i, name := range names {
		if l.namespace != "" || r.Scope == discovery.Cluster {
			selections[i].name = name
		} else {
			selections[i].FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		}
	}
	return selections
}

// Defined returns the columns of a type's CRD. It returns nil if the type has no CRD or the user cannot read
// it.
func (l *RowLoader) Defined(ctx context.Context, r discovery.Resource) (RowFormatter, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	rows, err := l.definitionRows(ctx, r)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	return rows, err
}

func (l *RowLoader) load(ctx context.Context, r discovery.Resource) (RowFormatter, error) {
	rows, err := l.definitionRows(ctx, r)
	if rows != nil || err != nil && !apierrors.IsForbidden(err) || l.rest == nil {
		return rows, err
	}
	// Users without permission to read the CRD also get the server's rows, without the paths of the columns.
	printed, failed := printedRowsOf(ctx, l.rest, r, l.namespace, l.selections(r))
	if printed == nil || failed != nil {
		return nil, errors.Join(err, failed)
	}
	return printed, nil
}

const (
	// AcceptTable requests a table and accepts other JSON from servers without tables.
	AcceptTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	// pageSize bounds the size of an answer.
	pageSize = 500
)

// printedRowsOf requests the rows of the selected objects, or returns nil if the server prints no tables.
func printedRowsOf(ctx context.Context, client rest.Interface, r discovery.Resource, namespace string,
	selections []objectRequest) (RowFormatter, error) {
	var printed []ServerRow
	var definitions []metav1.TableColumnDefinition
	for _, selected := range selections {
		next := ""
		for first := true; first || next != ""; first = false {
			page, err := printedPage(ctx, client, r, namespace, selected, next)
			if apierrors.IsNotFound(err) && selected.name != "" {
				break // it is not printed
			}
			if err != nil {
				return nil, err
			}
			if page == nil || len(page.ColumnDefinitions) == 0 && definitions == nil {
				return nil, nil
			}
			if definitions == nil {
				definitions = page.ColumnDefinitions
			}
			for _, row := range page.Rows {
				key, err := rowKey(row)
				if err != nil {
					return nil, err
				}
				printed = append(printed, ServerRow{Key: key, Cells: row.Cells})
			}
			next = page.Continue
		}
	}
	return NewServerRows(definitions, printed), nil
}

// printedPage requests a page of rows, or nil if the server prints no tables.
func printedPage(ctx context.Context, client rest.Interface, r discovery.Resource, namespace string,
	selected objectRequest, next string) (*metav1.Table, error) {
	request := ListRequest(client, r, namespace).SetHeader("Accept", AcceptTable)
	if selected.name != "" {
		request = request.Name(selected.name)
	} else {
		request = request.Param("limit", strconv.Itoa(pageSize)).Param("labelSelector",
			selected.LabelSelector).Param("fieldSelector", selected.FieldSelector)
	}
	if next != "" {
		request = request.Param("continue", next)
	}
	body, err := Body(request.Do(ctx))
	if err != nil {
		return nil, err
	}
	return readTable(body)
}

// Body returns the body of an answer. Only Error decodes the status of a refused request.
func Body(result rest.Result) ([]byte, error) {
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// readTable decodes a table, or returns nil for other kinds.
func readTable(body []byte) (*metav1.Table, error) {
	table := &metav1.Table{}
	// Unlike encoding/json, this package keeps integers in cells.
	if err := utiljson.Unmarshal(body, table); err != nil {
		return nil, fmt.Errorf("decode the server's table: %w", err)
	}
	if table.Kind != "Table" {
		return nil, nil
	}
	return table, nil
}

// ListRequest requests the objects of a type in JSON. An empty namespace means all.
func ListRequest(client rest.Interface, r discovery.Resource, namespace string) *rest.Request {
	if r.Scope != discovery.Namespaced {
		namespace = ""
	}
	return listRequest(client, r.GVR, namespace)
}

func listRequest(client rest.Interface, gvr schema.GroupVersionResource, namespace string) *rest.Request {
	path := "/apis/" + gvr.Group + "/" + gvr.Version
	if gvr.Group == "" {
		path = "/api/" + gvr.Version
	}
	request := client.Get().AbsPath(path).SetHeader("Accept", "application/json")
	if namespace != "" {
		request = request.Namespace(namespace)
	}
	return request.Resource(gvr.Resource)
}

// rowKey returns the key of a row's object.
func rowKey(row metav1.TableRow) (string, error) {
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(row.Object.Raw, &object); err != nil {
		return "", fmt.Errorf("a row of the server's table has no object: %w", err)
	}
	if object.Namespace == "" {
		return object.Name, nil
	}
	return object.Namespace + "/" + object.Name, nil
}

// columnPath starts the API server's description of a CRD column without a description.
const columnPath = "Custom resource definition column (in JSONPath format): "

// ServerColumns returns the columns of a type from the server's table. It includes only columns with their
// path in the description.
func ServerColumns(ctx context.Context, client rest.Interface, r discovery.Resource,
	namespace string) ([]crd.Column, error) {
	request := ListRequest(client, r, namespace).SetHeader("Accept", AcceptTable).
		Param("limit", "1").Param("includeObject", string(metav1.IncludeNone))
	body, err := Body(request.Do(ctx))
	if err != nil {
		return nil, err
	}
	table, err := readTable(body)
	if table == nil {
		return nil, err
	}
	var columns []crd.Column
	for _, c := range table.ColumnDefinitions {
		if path, ok := strings.CutPrefix(c.Description, columnPath); ok {
			columns = append(columns, crd.Column{Name: c.Name, Type: c.Type, Format: c.Format,
				Priority: c.Priority, JSONPath: path})
		}
	}
	return columns, nil
}

// NewPlainClient returns a client for any path that can decode a Status.
func NewPlainClient(config *rest.Config, httpClient *http.Client) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.APIPath = "/"
	scheme := runtime.NewScheme()
	// to decode refusals
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.UnversionedRESTClientForConfigAndClient(config, httpClient)
}
