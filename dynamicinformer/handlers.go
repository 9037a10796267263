package dynamicinformer

import (
	"context"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/informer"
)

// Handlers returns the event handlers of the informer, including the handlers of subscriptions, in the order
// in which they were added.
func (i *Informer) Handlers() []status.Handler {
	registrations := i.core.Registrations()
	all := make([]status.Handler, 0, len(registrations))
	for _, r := range registrations {
		all = append(all, status.Handler{Name: r.Name(), Depth: r.Depth(), Lag: r.Lag(),
			Synced: r.HasSynced(), DecodesBecause: r.DecodesBecause()})
	}
	return all
}

// Flush waits until every event handler of the informer, including the handlers of subscriptions, has handled
// all events that were queued before the call. After WaitForSync these include the initial list. Flush does
// not wait for later events.
//
// It returns the cause of ctx, or ErrStopped if the informer stopped and dropped some of these events. Do not
// call it from an event handler: it would wait for its own return.
func (i *Informer) Flush(ctx context.Context) error { return i.core.Flush(ctx) }

// Named returns an event handler that forwards to handler and has a name, which appears in status.Handler and
// in errors. The default name is the Go type, which several handlers may share. Named and MetadataOnly can be
// combined in either order.
func Named(name string, handler cache.ResourceEventHandler) cache.ResourceEventHandler {
	if handler == nil {
		return nil // informers reject nil
	}
	return namedHandler{handler, name}
}

type namedHandler struct {
	cache.ResourceEventHandler
	name string
}

var (
	_ informer.Named   = namedHandler{}
	_ informer.Wrapper = namedHandler{}
)

// HandlerName implements informer.Named.
func (n namedHandler) HandlerName() string { return n.name }

// Unwrap implements informer.Wrapper.
func (n namedHandler) Unwrap() cache.ResourceEventHandler { return n.ResourceEventHandler }

// MetadataOnly returns an event handler for callers that need only metadata, such as controllers that put
// keys into a queue. No object is decoded for it. It forwards to handler, but the objects are not
// *unstructured.Unstructured. Each is a metav1.Object, a runtime.Object and a PackedObject, so
// cache.MetaNamespaceKeyFunc, meta.Accessor and controller-runtime's handlers accept it. Missed deletions
// arrive as cache.DeletedFinalStateUnknown as usual.
//
// Reading the name, namespace, UID, resource version, labels and kind costs almost nothing. The other getters
// parse only their field; the first one of a compressed object decompresses it. The results do not pin the
// object in memory. Setters panic. With StorageObject the handler receives decoded objects.
func MetadataOnly(handler cache.ResourceEventHandler) cache.ResourceEventHandler {
	if handler == nil {
		return nil // informers reject nil
	}
	return metadataHandler{handler}
}

type metadataHandler struct{ cache.ResourceEventHandler }

var (
	_ informer.Undecoded = metadataHandler{}
	_ informer.Wrapper   = metadataHandler{}
)

// TakesUndecoded implements informer.Undecoded.
func (metadataHandler) TakesUndecoded() {}

// Unwrap implements informer.Wrapper.
func (m metadataHandler) Unwrap() cache.ResourceEventHandler { return m.ResourceEventHandler }

// LeftShardHandler is an event handler that also receives objects that leave the shard (see Shard). Those
// objects still exist on the server, so do not undo work that was done for them. OnLeftShard is called in
// order with the other methods. The informer finds the method through Named and MetadataOnly; other wrappers
// must forward it.
type LeftShardHandler interface {
	cache.ResourceEventHandler
	// OnLeftShard receives the last observed state of an object that left the shard.
	OnLeftShard(obj any)
}

// WithLeftShard returns an event handler that forwards to handler and implements LeftShardHandler.
func WithLeftShard(handler cache.ResourceEventHandler, leftShard func(obj any)) cache.ResourceEventHandler {
	if handler == nil {
		return nil // informers reject nil
	}
	return leftShardHandler{handler, leftShard}
}

type leftShardHandler struct {
	cache.ResourceEventHandler
	leftShard func(obj any)
}

var (
	_ LeftShardHandler = leftShardHandler{}
	_ informer.Wrapper = leftShardHandler{}
)

// OnLeftShard implements LeftShardHandler.
func (w leftShardHandler) OnLeftShard(obj any) { w.leftShard(obj) }

// Unwrap implements informer.Wrapper.
func (w leftShardHandler) Unwrap() cache.ResourceEventHandler { return w.ResourceEventHandler }
