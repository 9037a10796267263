package indexers

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// storedObject is an object whose JSON is kept, such as a dynamicinformer.PackedObject.
type storedObject interface {
	View(read func(json []byte) error) error
	Decoded() *unstructured.Unstructured
	Unstructured() *unstructured.Unstructured
}

// StoredKeys gives the keys of an object as a cache keeps it: what [Functions.KeysJSON] gives where that is JSON, which
// is not decoded for it, and else what [Functions.Keys] gives.
func (f *Functions) StoredKeys(object any) [][]string {
	o, ok := object.(storedObject)
	if !ok {
		return f.Keys(object)
	}
	if u := o.Decoded(); u != nil { // by whoever read it before
		return f.Keys(u)
	}
	var keys [][]string
	err := o.View(func(json []byte) error {
		keys = f.KeysJSON(json, nil)
		return nil
	})
	if err != nil { // damaged: what is left of it
		return f.Keys(o.Unstructured())
	}
	return keys
}
