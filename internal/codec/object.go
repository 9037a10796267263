package codec

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// objectSerializer decodes objects and lists. It encodes, and decodes what is unusual, as the serializer that
// it holds.
type objectSerializer struct {
	runtime.Serializer
	decoder *jsontext.Decoder
	typed   map[string]bool
}

// Decode implements runtime.Decoder.
func (s *objectSerializer) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if defaults == nil {
		switch target := into.(type) {
		case nil:
			if object, gvk := s.object(data); gvk != nil && !s.typed[gvk.Kind] {
				return object, gvk, nil
			}
		case *unstructured.Unstructured:
			if object, gvk := s.object(data); gvk != nil {
				target.Object = object.Object
				return target, gvk, nil
			}
		case *unstructured.UnstructuredList:
			// Into a list that has content already, the stock serializer merges.
			if target.Object == nil && target.Items == nil {
				if gvk := s.list(data, target); gvk != nil {
					return target, gvk, nil
				}
			}
		}
	}
	return s.Serializer.Decode(data, defaults, into)
}

// object decodes data, or returns a nil GVK when it is unusual or wrong.
func (s *objectSerializer) object(data []byte) (*unstructured.Unstructured, *schema.GroupVersionKind) {
	content, err := s.decoder.DecodeUnique(data)
	if err != nil {
		return nil, nil
	}
	return &unstructured.Unstructured{Object: content}, kindOf(content)
}

// list decodes data into target, or returns nil and leaves target alone when data is unusual or wrong.
func (s *objectSerializer) list(data []byte, target *unstructured.UnstructuredList) *schema.GroupVersionKind {
	content, items, err := s.decoder.DecodeList(data)
	if err != nil {
		return nil
	}
	gvk := kindOf(content)
	if gvk == nil {
		return nil
	}
	// The items of lists of built-in types come without kind and version.
	version, kind := content["apiVersion"].(string), strings.TrimSuffix(gvk.Kind, "List")
	objects := make([]unstructured.Unstructured, len(items))
	for i, item := range items {
		objects[i].Object = item
		if objects[i].GetKind() == "" && objects[i].GetAPIVersion() == "" {
			objects[i].SetKind(kind)
			objects[i].SetAPIVersion(version)
		}
	}
	target.Object, target.Items = content, objects
	return gvk
}

// kindOf returns the kind of an object that has a valid one, and a version; otherwise nil.
func kindOf(content map[string]any) *schema.GroupVersionKind {
	version, _ := content["apiVersion"].(string)
	kind, _ := content["kind"].(string)
	gv, err := schema.ParseGroupVersion(version)
	if err != nil || gv.Version == "" || kind == "" {
		return nil
	}
	gvk := gv.WithKind(kind)
	return &gvk
}
