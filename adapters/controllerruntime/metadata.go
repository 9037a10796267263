package controllerruntime

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// MetadataReader is implemented by event handlers and predicates that read only the metadata of objects. No
// object is decoded for a source if its handler and all its predicates are MetadataReaders, or handlers and
// predicates of controller-runtime that read only metadata. See OnlyMetadata for the objects that they
// receive.
type MetadataReader interface {
	// ReadsOnlyMetadata is never called.
	ReadsOnlyMetadata()
}

// OnlyMetadata returns a MetadataReader that forwards to inner the events that all predicates accept. Use it
// for handlers and predicates of functions, if these read only metadata:
//
//	builder.Watches(&corev1.Secret{}, controllerruntime.OnlyMetadata(
//		handler.EnqueueRequestsFromMapFunc(toIngress), predicate.NewPredicateFuncs(hasAnnotation)))
//
// They receive objects with the getters of client.Object and the kind of the watched object, but of a Go type
// of this package: a type assertion fails, and setters panic. DeepCopyObject and MarshalJSON decode; the
// former returns an object of the watched Go type. Other caches call them with their usual objects.
func OnlyMetadata[request comparable](inner handler.TypedEventHandler[client.Object, request],
	predicates ...predicate.Predicate) handler.TypedEventHandler[client.Object, request] {
	return onlyMetadata[request]{inner, predicate.And(predicates...)}
}

type onlyMetadata[request comparable] struct {
	inner   handler.TypedEventHandler[client.Object, request]
	accepts predicate.Predicate
}

var _ MetadataReader = onlyMetadata[string]{}

func (onlyMetadata[request]) ReadsOnlyMetadata() {}

func (o onlyMetadata[request]) Create(ctx context.Context, e event.CreateEvent,
	queue workqueue.TypedRateLimitingInterface[request]) {
	if o.accepts.Create(e) {
		o.inner.Create(ctx, e, queue)
	}
}

func (o onlyMetadata[request]) Update(ctx context.Context, e event.UpdateEvent,
	queue workqueue.TypedRateLimitingInterface[request]) {
	if o.accepts.Update(e) {
		o.inner.Update(ctx, e, queue)
	}
}

func (o onlyMetadata[request]) Delete(ctx context.Context, e event.DeleteEvent,
	queue workqueue.TypedRateLimitingInterface[request]) {
	if o.accepts.Delete(e) {
		o.inner.Delete(ctx, e, queue)
	}
}

func (o onlyMetadata[request]) Generic(ctx context.Context, e event.GenericEvent,
	queue workqueue.TypedRateLimitingInterface[request]) {
	if o.accepts.Generic(e) {
		o.inner.Generic(ctx, e, queue)
	}
}

// metadataView is a packed object for a handler that reads only metadata. It decodes nothing until it is
// copied.
type metadataView struct {
	packedObject
	converter *converter
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
func (c *converter) metadataOf(stored any, keptFields string) (client.Object, error) {
	switch stored := stored.(type) {
	case packedObject:
		if c.form == metadataForm {
			keptFields = ""
		}
		return &metadataView{stored, c, keptFields}, nil
	case client.Object:
		if keptFields != "" {
			return markedCopy(stored, keptFields), nil
		}
		return stored, nil
	}
	return c.checkForm(stored)
}

// GetObjectKind implements runtime.Object. As in the stock cache, typed objects have no kind.
func (v *metadataView) GetObjectKind() schema.ObjectKind {
	switch v.converter.form {
	case typedForm:
		return schema.EmptyObjectKind
	case metadataForm:
		return &metav1.TypeMeta{APIVersion: v.converter.apiVersion, Kind: v.converter.gvk.Kind}
	default:
		return v.packedObject.GetObjectKind()
	}
}

func (v *metadataView) DeepCopyObject() runtime.Object {
	object, err := v.converter.sharedObject(v.packedObject)
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
