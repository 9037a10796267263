package convert

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/adapters/controllerruntime/internal/decode"
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
	PeekJSON(read func(json []byte) error) error
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

// GetOwnerReferences decodes without maps, in half the time (BenchmarkOwnerReferences). Controllers
// call it for all objects that they may own.
func (v *metadataView) GetOwnerReferences() []metav1.OwnerReference {
	var object struct {
		Metadata struct {
			OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
		} `json:"metadata"`
	}
	target := reflect.ValueOf(&object)
	if decode.DecoderFor(target.Type().Elem()).DecodeView(v, target) != nil {
		return v.packedObject.GetOwnerReferences()
	}
	return object.Metadata.OwnerReferences
}

// ReadJSON does not mark the object as read: the cache itself reads it for an event.
func (v *metadataView) ReadJSON(read func(json []byte) error) error { return v.PeekJSON(read) }

// MarshalJSON implements json.Marshaler. It decodes.
func (v *metadataView) MarshalJSON() ([]byte, error) { return json.Marshal(v.DeepCopyObject()) }

// handlerWithReason adds to a handler the reason why objects are decoded for it, for status.Handler.
type handlerWithReason struct {
	toolscache.ResourceEventHandler
	reason string
}

// DecodesBecause returns the reason for the informer.
func (h handlerWithReason) DecodesBecause() string { return h.reason }

// Unwrap returns the handler for the informer, which calls it in place of this one.
func (h handlerWithReason) Unwrap() toolscache.ResourceEventHandler { return h.ResourceEventHandler }

// ReducedAnnotation is the key of the annotation of reduced objects: see controllerruntime.ReducedAnnotation.
const ReducedAnnotation = "crdcache.dev/reduced object: patch it, or read it live before an update"

// IsReduced reports whether an object is marked as reduced.
func IsReduced(object client.Object) bool {
	_, reduced := object.GetAnnotations()[ReducedAnnotation]
	return reduced || object.GetSelfLink() == ReducedAnnotation
}

// mark marks an object as reduced. It does not change maps and lists that the object shares.
func mark(object client.Object, keptFields string) {
	object.SetSelfLink(ReducedAnnotation)
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[ReducedAnnotation] = keptFields
	object.SetAnnotations(annotations)
	object.SetManagedFields(append(slices.Clip(object.GetManagedFields()), notExtracted))
}

// notExtracted makes the extraction of an apply configuration fail, because its fields are not a map. An
// extracted configuration would lack the dropped fields, and applying it would remove them from the server.
var notExtracted = metav1.ManagedFieldsEntry{Manager: "crdcache", Operation: metav1.ManagedFieldsOperationApply,
	FieldsV1: &metav1.FieldsV1{Raw: []byte(strconv.Quote(extractsPart))}}

const extractsPart = "the object has only the fields that the cache keeps, and applying an extract of it would remove the others: read it again with GetLive or from the API server"

// MarkedCopy returns a marked copy of a shared object, which shares everything else with it.
func MarkedCopy(shared client.Object, keptFields string) client.Object {
	var object client.Object
	if u, ok := shared.(*unstructured.Unstructured); ok {
		content := maps.Clone(u.Object)
		if metadata, ok := content["metadata"].(map[string]any); ok {
			content["metadata"] = maps.Clone(metadata)
		}
		object = &unstructured.Unstructured{Object: content}
	} else {
		value := reflect.New(reflect.TypeOf(shared).Elem())
		value.Elem().Set(reflect.ValueOf(shared).Elem())
		object = value.Interface().(client.Object)
	}
	mark(object, keptFields)
	return object
}

// reducedItem is a stored object that the informer has reduced, for a handler.
type reducedItem struct {
	stored     any
	keptFields string
}

// MarkReduced marks the argument of the handler.
func (h *convertingHandler) MarkReduced(stored any, keptFields string) any {
	return reducedItem{stored, keptFields}
}

// MarkReduced marks the argument of the handler, for handlers of unstructured objects.
func (h handlerWithReason) MarkReduced(object any, keptFields string) any {
	if object, ok := object.(client.Object); ok {
		return MarkedCopy(object, keptFields)
	}
	return object
}
