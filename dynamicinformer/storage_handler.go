package dynamicinformer

import (
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/informer"
)

// MetadataOnly returns an event handler that makes do with the metadata of objects, as most controllers do that put
// keys into a queue: for it, nothing is decoded. It is called as handler would be, but what it gets is not an
// *unstructured.Unstructured. It is a metav1.Object and a runtime.Object, so that cache.MetaNamespaceKeyFunc,
// meta.Accessor and controller-runtime's handlers work on it. Where a deletion was missed, it is in a
// cache.DeletedFinalStateUnknown as usual.
//
// Name, namespace, UID, resource version, labels and kind cost next to nothing, and keeping them does not keep the object
// in memory; other getters decode the object. What would set something panics. It is a PackedObject, whose JSON can be
// read. With StorageObject handlers get the decoded objects all the same.
func MetadataOnly(handler cache.ResourceEventHandler) cache.ResourceEventHandler {
	if handler == nil {
		return nil // which informers refuse
	}
	return metadataOnly{handler}
}

type metadataOnly struct{ cache.ResourceEventHandler }

var (
	_ informer.Undecoded = metadataOnly{}
	_ informer.Wrapper   = metadataOnly{}
)

// TakesUndecoded implements informer.Undecoded.
func (metadataOnly) TakesUndecoded() {}

// Unwrap implements informer.Wrapper.
func (m metadataOnly) Unwrap() cache.ResourceEventHandler { return m.ResourceEventHandler }
