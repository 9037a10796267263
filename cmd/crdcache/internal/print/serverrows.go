package print

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

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

const (
	// acceptTable asks for a table, and takes what a server that makes none has to say.
	acceptTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	// pageSize bounds what is in memory of an answer at once.
	pageSize = 500
)

// printedRowsOf asks the server to print the objects of a type that one of the selections selects; nil when it cannot.
func printedRowsOf(ctx context.Context, client rest.Interface, r discovery.Resource, namespace string, selections []selection) (Rows, error) {
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
func printedPage(ctx context.Context, client rest.Interface, r discovery.Resource, namespace string, of selection, next string) (*metav1.Table, error) {
	request := client.Get().AbsPath(groupPath(r.GVR.GroupVersion())).SetHeader("Accept", acceptTable)
	if namespace != "" && r.Scope == discovery.Namespaced {
		request = request.Namespace(namespace)
	}
	if of.name != "" {
		request = request.Name(of.name)
	} else {
		request = request.Param("limit", strconv.Itoa(pageSize)).Param("labelSelector", of.LabelSelector).Param("fieldSelector", of.FieldSelector)
	}
	if next != "" {
		request = request.Param("continue", next)
	}
	body, err := bodyOf(request.Resource(r.GVR.Resource).Do(ctx))
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

// groupPath is where a group version is served.
func groupPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.Group + "/" + gv.Version
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

// ServerColumns are the columns of a type of a CRD in the tables of the server, as far as those tell what they show:
// the server describes by its path a column that has no description of its own.
func ServerColumns(ctx context.Context, client rest.Interface, r discovery.Resource, namespace string) ([]crd.Column, error) {
	request := client.Get().AbsPath(groupPath(r.GVR.GroupVersion())).SetHeader("Accept", acceptTable).
		Param("limit", "1").Param("includeObject", string(metav1.IncludeNone))
	if namespace != "" && r.Scope == discovery.Namespaced {
		request = request.Namespace(namespace)
	}
	body, err := bodyOf(request.Resource(r.GVR.Resource).Do(ctx))
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
			columns = append(columns, crd.Column{Name: c.Name, Type: c.Type, Format: c.Format, Priority: c.Priority, JSONPath: path})
		}
	}
	return columns, nil
}

// NewPlainClient returns a client for any path, which reads what the server refuses with.
func NewPlainClient(config *rest.Config, httpClient *http.Client) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.APIPath = "/"
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // so that refusals are read, which are a Status
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.UnversionedRESTClientForConfigAndClient(config, httpClient)
}
