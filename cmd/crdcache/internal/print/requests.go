package print

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/naming"
)

type Definitions func(ctx context.Context, of schema.GroupResource) (*crd.Definition, error)

const (
	// columnsTimeout is independent of --timeout, which can be used up before the columns are read.
	columnsTimeout      = 30 * time.Second
	maxParallelRequests = 10
)

// LoadRows returns rows with the columns of the CRD for each type. They are nil if the type has no CRD or the
// user may not read it: then the API server prints the rows. After other errors, LoadRows warns and returns
// rows with name and age. Ages are those at the time now.
func LoadRows(ctx context.Context, definitions Definitions, types []discovery.Resource,
	errOut io.Writer, now func() time.Time) []*Rows {
	ctx, cancel := context.WithTimeout(ctx, columnsTimeout)
	defer cancel()
	rows, errs := make([]*Rows, len(types)), make([]error, len(types))
	// The requests end with ctx.
	workqueue.ParallelizeUntil(context.Background(), maxParallelRequests, len(types), func(i int) {
		gvr := types[i].GVR
		// CRD groups contain a dot, and built-in types have no CRD.
		_, isBuiltin := naming.FindBuiltin(gvr.Group, types[i].GVK.Kind, "")
		if isBuiltin || !strings.Contains(gvr.Group, ".") {
			return
		}
		definition, err := definitions(ctx, gvr.GroupResource())
		switch {
		case err == nil:
			version, _ := definition.Version(gvr.Version)
			rows[i] = NewRows(version.Columns, now)
		case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
			rows[i], errs[i] = NewRows(nil, now), err
		}
	})
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

// BodyOf returns the body of an answer, or the error in its status.
func BodyOf(result rest.Result) ([]byte, error) {
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// tableOf works like readTable for an answer.
func tableOf(answer rest.Result) (*metav1.Table, error) {
	body, err := BodyOf(answer)
	if err != nil {
		return nil, err
	}
	return readTable(body)
}

// readTable decodes a table. It returns nil for other kinds.
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

// pathDescriptionPrefix precedes the path in the API server's description of a CRD column.
const pathDescriptionPrefix = "Custom resource definition column (in JSONPath format): "

// ServerColumns returns the columns of the server's table that have their path in the description.
func ServerColumns(ctx context.Context, client rest.Interface, r discovery.Resource,
	namespace string) (columns []crd.Column, err error) {
	table, err := tableOf(ListRequest(client, r, namespace).SetHeader("Accept", AcceptTable).Param("limit", "1").
		Param("includeObject", string(metav1.IncludeNone)).Do(ctx))
	if table == nil {
		return nil, err
	}
	for _, c := range table.ColumnDefinitions {
		if path, ok := strings.CutPrefix(c.Description, pathDescriptionPrefix); ok {
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

// NewPlainClient returns a client for requests to any path. It decodes only a Status.
func NewPlainClient(config *rest.Config, httpClient *http.Client) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.APIPath = "/"
	config.GroupVersion = &schema.GroupVersion{Version: "v1"} // errors do not name another group
	scheme := runtime.NewScheme()
	// to decode refusals
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.UnversionedRESTClientForConfigAndClient(config, httpClient)
}
