package print

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// RowLoader loads the row formatters of types: the columns of a CRD, or the rows that the server prints.
type RowLoader struct {
	definitions Definitions
	tables      *TableClient // nil if the server is not asked for rows
	errOut      io.Writer
}

// NewRowLoader returns a loader. tables reads the types without a readable CRD, and can be nil.
func NewRowLoader(definitions Definitions, tables *TableClient, errOut io.Writer) *RowLoader {
	return &RowLoader{definitions, tables, errOut}
}

// Prepare makes the table client read the types without a readable CRD with their rows.
func (l *RowLoader) Prepare(ctx context.Context, types []discovery.Resource) {
	forEach(ctx, types, func(ctx context.Context, i int) {
		rows, err := l.definitionRows(ctx, types[i])
		if rows == nil && (err == nil || apierrors.IsForbidden(err)) {
			l.tables.enable(types[i].GVR)
		}
	})
}

// Load returns the row formatter of each type. If the columns of a type cannot be read, it warns and returns
// name and age. Types without a readable CRD must have been listed.
func (l *RowLoader) Load(ctx context.Context, types []discovery.Resource) []RowFormatter {
	rows, errs := make([]RowFormatter, len(types)), make([]error, len(types))
	forEach(ctx, types, func(ctx context.Context, i int) {
		rows[i], errs[i] = l.definitionRows(ctx, types[i])
		if l.tables == nil || rows[i] != nil || errs[i] != nil && !apierrors.IsForbidden(errs[i]) {
			return
		}
		if rows[i] = l.tables.rows(types[i].GVR); rows[i] != nil {
			errs[i] = nil
		}
	})
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

// forEach calls f concurrently with the index of each type, and with a context that ends after timeout.
func forEach(ctx context.Context, types []discovery.Resource, f func(ctx context.Context, i int)) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i := range types {
		slots <- struct{}{}
		wg.Go(func() { // ends with its requests, which end with ctx
			defer func() { <-slots }()
			f(ctx, i)
		})
	}
	wg.Wait()
}

// acceptTable requests a table and accepts other JSON from servers without tables.
const acceptTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

// bodyOf returns the body of an answer. Only Error decodes the status of a refused request.
func bodyOf(result rest.Result) ([]byte, error) {
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

// tableRequest requests a type as a table. An empty namespace means all.
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

// namespaceOf returns the namespace to read a type in, or "" for all.
func namespaceOf(r discovery.Resource, namespace string) string {
	if r.Scope != discovery.Namespaced {
		return ""
	}
	return namespace
}

// columnPath starts the API server's description of a CRD column without a description.
const columnPath = "Custom resource definition column (in JSONPath format): "

// ServerColumns returns the columns of a type from the server's table. It includes only columns whose
// description contains their path.
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
