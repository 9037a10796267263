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
	"github.com/crdcache/crdcache/internal/naming"
)

// Definitions returns the CRD of a type.
type Definitions func(ctx context.Context, of schema.GroupResource) (*crd.Definition, error)

const (
	// timeout bounds the wait for all columns. It is independent of --timeout, which can be used up by then.
	timeout = 30 * time.Second
	// parallel bounds the concurrent requests.
	parallel = 10
)

// LoadRows returns the row formatter of each type, with the columns of its CRD. It returns nil for a type
// without a CRD, or if the user must not read it: the API server prints its rows. If the columns of a type
// cannot be read, it warns and returns name and age.
func LoadRows(ctx context.Context, definitions Definitions, types []discovery.Resource,
	errOut io.Writer) []RowFormatter {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	rows, errs := make([]RowFormatter, len(types)), make([]error, len(types))
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, r := range types {
		// CRD groups contain a dot, and built-in types have no CRD.
		_, isBuiltin := naming.FindBuiltin(r.GVR.Group, r.GVK.Kind, "")
		if isBuiltin || !strings.Contains(r.GVR.Group, ".") {
			continue
		}
		// Each goroutine writes to its own element and ends with its requests, which end with ctx.
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			definition, err := definitions(ctx, r.GVR.GroupResource())
			switch {
			case err == nil:
				version, _ := definition.Version(r.GVR.Version)
				rows[i] = NewRows(version.Columns)
			case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
				rows[i], errs[i] = NewRows(nil), err
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			WarnOfMissingColumns(errOut, types[i], err)
		}
	}
	return rows
}

// WarnOfMissingColumns warns that a table has only names and ages.
func WarnOfMissingColumns(errOut io.Writer, r discovery.Resource, cause error) {
	Warnf(errOut, "%s is shown with name and age only, because its columns cannot be read: %v", r, cause)
}

// AcceptTable requests a table and accepts other JSON from servers without tables.
const AcceptTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

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

// columnPath starts the API server's description of a CRD column without a description.
const columnPath = "Custom resource definition column (in JSONPath format): "

// ServerColumns returns the columns of the server's table that have their path in the description.
func ServerColumns(ctx context.Context, client rest.Interface, r discovery.Resource,
	namespace string) (columns []crd.Column, err error) {
	body, err := Body(ListRequest(client, r, namespace).SetHeader("Accept", AcceptTable).Param("limit", "1").
		Param("includeObject", string(metav1.IncludeNone)).Do(ctx))
	if err != nil {
		return nil, err
	}
	table, err := readTable(body)
	if table == nil {
		return nil, err
	}
	for _, c := range table.ColumnDefinitions {
		if path, ok := strings.CutPrefix(c.Description, columnPath); ok {
			columns = append(columns, crd.Column{Name: c.Name, Type: c.Type, Format: c.Format,
				Priority: c.Priority, JSONPath: path})
		}
	}
	return columns, nil
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
