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
	type queue = workqueue.TypedRateLimitingInterface[request]
	accepts := predicate.And(predicates...)
	return onlyMetadata[request]{handler.TypedFuncs[client.Object, request]{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if accepts.Create(e) {
				inner.Create(ctx, e, q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if accepts.Update(e) {
				inner.Update(ctx, e, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if accepts.Delete(e) {
				inner.Delete(ctx, e, q)
			}
		},
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q queue) {
			if accepts.Generic(e) {
				inner.Generic(ctx, e, q)
			}
		},
	}}
}

type onlyMetadata[request comparable] struct {
	handler.TypedFuncs[client.Object, request]
}

var _ MetadataReader = onlyMetadata[string]{}

func (onlyMetadata[request]) ReadsOnlyMetadata() {}
