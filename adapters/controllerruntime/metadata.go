package controllerruntime

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
		CreateFunc:  accepted[queue](accepts.Create, inner.Create),
		UpdateFunc:  accepted[queue](accepts.Update, inner.Update),
		DeleteFunc:  accepted[queue](accepts.Delete, inner.Delete),
		GenericFunc: accepted[queue](accepts.Generic, inner.Generic),
	}}
}

// accepted returns a function that forwards the accepted events.
func accepted[queue, event any](accepts func(event) bool,
	forward func(context.Context, event, queue)) func(context.Context, event, queue) {
	return func(ctx context.Context, e event, q queue) {
		if accepts(e) {
			forward(ctx, e, q)
		}
	}
}

type onlyMetadata[request comparable] struct {
	handler.TypedFuncs[client.Object, request]
}

var _ MetadataReader = onlyMetadata[string]{}

func (onlyMetadata[request]) ReadsOnlyMetadata() {}
