package convert

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// metadataView is a packed object for a handler that reads only metadata. It decodes nothing until it is
// copied.
type metadataView struct {
	packedObject
	converter *Converter
	// keptFields are the fields that a reduced object has; empty for a whole object.
	keptFields string
}

// packedObject is a stored object that is packed.
type packedObject interface {
	dynamicinformer.PackedObject
	metav1.Object
	GetObjectKind() schema.ObjectKind
}

// metadataOf returns a stored object for a handler that reads only metadata.
func (c *Converter) metadataOf(stored any, keptFields string) (client.Object, error) {
	switch stored := stored.(type) {
	case packedObject:
		if c.form == Metadata {
			keptFields = ""
		}
		return &metadataView{stored, c, keptFields}, nil
	case client.Object:
		if keptFields != "" {
			return MarkedCopy(stored, keptFields), nil
		}
		return stored, nil
	}
	return c.checkForm(stored)
}

// GetObjectKind implements runtime.Object. As in the stock cache, typed objects have no kind.
func (v *metadataView) GetObjectKind() schema.ObjectKind {
	switch v.converter.form {
	case Typed:
		return schema.EmptyObjectKind
	case Metadata:
		return &metav1.TypeMeta{APIVersion: v.converter.apiVersion, Kind: v.converter.gvk.Kind}
	default:
		return v.packedObject.GetObjectKind()
	}
}

func (v *metadataView) DeepCopyObject() runtime.Object {
	object, err := v.converter.SharedObject(v.packedObject)
	if err != nil {
		return v.converter.newMetadataObject(v)
	}
	copied := object.DeepCopyObject()
	if v.keptFields != "" {
		mark(copied.(client.Object), v.keptFields)
	}
	return copied
}

// MarshalJSON implements json.Marshaler. It decodes.
func (v *metadataView) MarshalJSON() ([]byte, error) { return json.Marshal(v.DeepCopyObject()) }

// handlerWithReason adds to a handler the reason why objects are decoded for it, for status.Handler.
type handlerWithReason struct {
	toolscache.ResourceEventHandler
	reason string
}

// DecodesBecause implements informer.Decoding.
func (h handlerWithReason) DecodesBecause() string { return h.reason }

// Unwrap implements informer.Wrapper.
func (h handlerWithReason) Unwrap() toolscache.ResourceEventHandler { return h.ResourceEventHandler }
