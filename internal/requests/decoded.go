package requests

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/internal/jsontext"
)

func (c *Client) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	inner := c.Interface.Resource(gvr)
	return allNamespaces{decodingResource{inner, c, gvr, ""}, inner}
}

type allNamespaces struct {
	decodingResource
	resource dynamic.NamespaceableResourceInterface
}

func (a allNamespaces) Namespace(namespace string) dynamic.ResourceInterface {
	return decodingResource{a.resource.Namespace(namespace), a.client, a.gvr, namespace}
}

// decodingResource is a resource of client-go's dynamic client that decodes lists in one pass.
type decodingResource struct {
	dynamic.ResourceInterface
	client    *Client
	gvr       schema.GroupVersionResource
	namespace string
}

func (d decodingResource) List(
	ctx context.Context, options metav1.ListOptions,
) (*unstructured.UnstructuredList, error) {
	answer := d.client.get(d.gvr, d.namespace).
		SpecificallyVersionedParams(&options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"}).
		Do(ctx)
	list := &unstructured.UnstructuredList{}
	if data, err := answer.Raw(); err == nil && decodeList(data, list) {
		return list, nil
	}
	if err := answer.Into(list); err != nil {
		return nil, err
	}
	return list, nil
}

var listDecoder = jsontext.NewDecoder()

// decodeList decodes a list in one pass. It returns false if client-go has to decode the list.
func decodeList(data []byte, into *unstructured.UnstructuredList) bool {
	content, items, ok := listDecoder.DecodeList(data)
	version, _ := content["apiVersion"].(string)
	kind, _ := content["kind"].(string)
	gv, invalid := schema.ParseGroupVersion(version)
	if !ok || invalid != nil || gv.Version == "" || !strings.HasSuffix(kind, "List") {
		return false
	}
	objects := make([]unstructured.Unstructured, len(items))
	for i, item := range items {
		objects[i].Object = item
		// Items in lists of built-in types have neither kind nor version.
		if objects[i].GetKind() == "" && objects[i].GetAPIVersion() == "" {
			objects[i].SetKind(strings.TrimSuffix(kind, "List"))
			objects[i].SetAPIVersion(version)
		}
	}
	into.Object, into.Items = content, objects
	return true
}
