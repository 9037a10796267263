package requests

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// listSerializer decodes lists of unstructured objects in one pass, with the results of client-go.
type listSerializer struct{ runtime.NegotiatedSerializer }

func (s listSerializer) DecoderToVersion(d runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return listDecoder{s.NegotiatedSerializer.DecoderToVersion(d, gv)}
}

type listDecoder struct{ runtime.Decoder }

func (d listDecoder) Decode(data []byte, defaults *schema.GroupVersionKind,
	into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if list, ok := into.(*unstructured.UnstructuredList); ok && DecodeList(data, list) {
		return list, nil, nil
	}
	return d.Decoder.Decode(data, defaults, into)
}

var jsonDecoder = jsontext.NewDecoder()

// DecodeList decodes a list in one pass. It returns false if client-go has to decode the list.
func DecodeList(data []byte, into *unstructured.UnstructuredList) bool {
	members := 0 // with repeated keys
	for m, err := range jsontext.Members(data) {
		if members++; err != nil || jsontext.ShadowsTypeMeta(string(m.Key)) {
			return false
		}
	}
	content, err := jsonDecoder.Decode(data)
	list := unstructured.Unstructured{Object: content}
	kind, isList := strings.CutSuffix(list.GetKind(), "List")
	gv, invalid := schema.ParseGroupVersion(list.GetAPIVersion())
	items, ok := content["items"].([]any)
	if !ok || err != nil || len(content) != members || !isList || invalid != nil || gv.Version == "" {
		return false
	}
	objects := make([]unstructured.Unstructured, len(items))
	for i, item := range items {
		if objects[i].Object, ok = item.(map[string]any); !ok {
			return false
		}
		// Items in lists of built-in types have neither kind nor version.
		if objects[i].GetKind() == "" && objects[i].GetAPIVersion() == "" {
			objects[i].SetGroupVersionKind(gv.WithKind(kind))
		}
	}
	delete(content, "items")
	into.Object, into.Items = content, objects
	return true
}
