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

// definitionRows returns the rows that a CRD declares; nil for a type without a CRD.
func (l *RowLoader) definitionRows(ctx context.Context, r discovery.Resource) (Rows, error) {
	if !strings.Contains(r.GVR.Group, ".") {
		return nil, nil // the group of a CRD has a dot
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
	// timeout bounds the wait for all columns. It comes on top of --timeout, which may have been used up by
	// another type than those that are printed.
	timeout = 30 * time.Second
	// parallel bounds the requests at a time.
	parallel = 10
)

// RowLoader gets the rows of types.
type RowLoader struct {
	definitions Definitions
	rest        rest.Interface // nil when the server is not asked to print
	namespace   string
	selectors   metav1.ListOptions
	errOut      io.Writer
	names       map[schema.GroupVersionResource][]string
}

// Only says that of a type no other objects than those of these names will be shown.
func (l *RowLoader) Only(gvr schema.GroupVersionResource, names []string) {
	if l.names == nil {
		l.names = map[schema.GroupVersionResource][]string{}
	}
	l.names[gvr] = names
}

// NewRowLoader returns a Loader for a server. Namespace (empty: all) and selectors are those of the objects
// that will be shown; warnings go to errOut.
func NewRowLoader(config *rest.Config, httpClient *http.Client, definitions Definitions, namespace string,
	selectors metav1.ListOptions, errOut io.Writer) (*RowLoader, error) {
	plain, err := NewPlainClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return &RowLoader{definitions: definitions, rest: plain, namespace: namespace, selectors: selectors,
		errOut: errOut}, nil
}

// NewDefinitionLoader returns a Loader that knows the columns of CRDs alone, for objects that the server is
// not asked to print.
func NewDefinitionLoader(definitions Definitions, errOut io.Writer) *RowLoader {
	return &RowLoader{definitions: definitions, errOut: errOut}
}

// Load returns the rows of each type. A type whose columns cannot be had shows name and age, which is said.
func (l *RowLoader) Load(ctx context.Context, types []discovery.Resource) []Rows {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	rows, errs := make([]Rows, len(types)), make([]error, len(types))
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, r := range types {
		// Each goroutine writes to its own place and ends with its requests, which end with ctx.
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
				"warning: %s is shown with name and age alone, for its columns cannot be read: %s\n",
				types[i], strings.Join(strings.Fields(err.Error()), " "))
		}
		if rows[i] == nil {
			rows[i] = NewRows(nil)
		}
	}
	return rows
}

// selection is objects that are asked for together: those that selectors select, or one by its name.
type selection struct {
	metav1.ListOptions
	name string
}

// selections are what is asked for of the objects of a type that will be shown. Named ones are got where it
// is known in which namespace they are, because who may get them may not always list them.
func (l *RowLoader) selections(r discovery.Resource) []selection {
	names, ok := l.names[r.GVR]
	if !ok {
		return []selection{{ListOptions: l.selectors}}
	}
	selections := make([]selection, len(names))
	for i, name := range names {
		if l.namespace != "" || r.Scope == discovery.Cluster {
			selections[i].name = name
		} else {
			selections[i].FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		}
	}
	return selections
}

// Defined returns the rows that the CRD of a type declares; nil where the server has to print the objects, as
// those of a type without a CRD, or whose CRD may not be read.
func (l *RowLoader) Defined(ctx context.Context, r discovery.Resource) (Rows, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	rows, err := l.definitionRows(ctx, r)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	return rows, err
}

func (l *RowLoader) load(ctx context.Context, r discovery.Resource) (Rows, error) {
	rows, err := l.definitionRows(ctx, r)
	if rows != nil || err != nil && !apierrors.IsForbidden(err) || l.rest == nil {
		return rows, err
	}
	// Also for a type of a CRD that may not be read, as the tenants of a cluster may not: they get the cells,
	// if not the paths behind them.
	printed, failed := printedRowsOf(ctx, l.rest, r, l.namespace, l.selections(r))
	if printed == nil || failed != nil {
		return nil, errors.Join(err, failed)
	}
	return printed, nil
}

const (
	// acceptTable asks for a table, and takes what a server that makes none has to say.
	acceptTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	// pageSize bounds what is in memory of an answer at once.
	pageSize = 500
)

// printedRowsOf asks the server to print the objects of a type that one of the selections selects; nil when
// it cannot.
func printedRowsOf(ctx context.Context, client rest.Interface, r discovery.Resource, namespace string,
	selections []selection) (Rows, error) {
	var printed []ServerRow
	var definitions []metav1.TableColumnDefinition
	for _, selected := range selections {
		next := ""
		for first := true; first || next != ""; first = false {
			page, err := printedPage(ctx, client, r, namespace, selected, next)
			if apierrors.IsNotFound(err) && selected.name != "" {
				break // it is not shown
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

// printedPage asks the server to print a page of objects, or one by its name; nil when it cannot.
func printedPage(ctx context.Context, client rest.Interface, r discovery.Resource, namespace string,
	of selection, next string) (*metav1.Table, error) {
	request := tableRequest(client, r.GVR, namespaceOf(r, namespace))
	if of.name != "" {
		request = request.Name(of.name)
	} else {
		request = request.Param("limit", strconv.Itoa(pageSize)).Param("labelSelector",
			of.LabelSelector).Param("fieldSelector", of.FieldSelector)
	}
	if next != "" {
		request = request.Param("continue", next)
	}
	body, err := bodyOf(request.Do(ctx))
	if err != nil {
		return nil, err
	}
	return readTable(body)
}

// bodyOf is what the server answered. Where it refused, Error reads its words, and Raw does not.
func bodyOf(result rest.Result) ([]byte, error) {
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// readTable reads what a server printed; nil when it sent something else.
func readTable(body []byte) (*metav1.Table, error) {
	table := &metav1.Table{}
	// Unlike that of Go, this package keeps integers in cells.
	if err := utiljson.Unmarshal(body, table); err != nil {
		return nil, fmt.Errorf("the server's table is no JSON: %w", err)
	}
	if table.Kind != "Table" {
		return nil, nil
	}
	return table, nil
}

// tableRequest requests the objects of a type in a namespace, or in all, as a table.
func tableRequest(client rest.Interface, of schema.GroupVersionResource, namespace string) *rest.Request {
	path := "/apis/" + of.Group + "/" + of.Version
	if of.Group == "" {
		path = "/api/" + of.Version
	}
	request := client.Get().AbsPath(path).SetHeader("Accept", acceptTable)
	if namespace != "" {
		request = request.Namespace(namespace)
	}
	return request.Resource(of.Resource)
}

// namespaceOf returns the namespace to read a type in; empty for all.
func namespaceOf(r discovery.Resource, namespace string) string {
	if r.Scope != discovery.Namespaced {
		return ""
	}
	return namespace
}

// rowKey returns the key of the object that a row shows.
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

// columnPath is how the API server describes a column of a CRD that says nothing of itself.
const columnPath = "Custom resource definition column (in JSONPath format): "

// ServerColumns are the columns of a type of a CRD in the tables of the server, as far as those tell what
// they show: the server describes by its path a column that has no description of its own.
func ServerColumns(ctx context.Context, client rest.Interface, r discovery.Resource,
	namespace string) ([]crd.Column, error) {
	request := tableRequest(client, r.GVR, namespaceOf(r, namespace)).Param("limit",
		"1").Param("includeObject", string(metav1.IncludeNone))
	body, err := bodyOf(request.Do(ctx))
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

// NewPlainClient returns a client for any path, which reads what the server refuses with.
func NewPlainClient(config *rest.Config, httpClient *http.Client) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.APIPath = "/"
	scheme := runtime.NewScheme()
	// so that refusals are read, which are a Status
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.UnversionedRESTClientForConfigAndClient(config, httpClient)
}
