package controllerruntime

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
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
// They receive objects of a Go type of this package: getters and the kind work, a type assertion fails, and
// setters panic. DeepCopyObject and MarshalJSON decode. Other caches call them with their usual objects.
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
