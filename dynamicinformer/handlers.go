package dynamicinformer

import (
	"context"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/informer/delivery"
	"github.com/crdcache/crdcache/internal/naming"
)

// Handlers returns the event handlers, also of subscriptions, in the order of their addition.
func (i *Informer) Handlers() []status.Handler {
	return naming.Map(i.core.Registrations(), func(r *delivery.Registration) status.Handler {
		return status.Handler{Name: r.Name(), Depth: r.Depth(), Lag: r.Lag(),
			Coalesced: r.Coalesced(), Synced: r.HasSynced(), DecodesBecause: r.DecodesBecause()}
	})
}

// Flush waits until every event handler, also of subscriptions, has handled the events queued
// before the call. After WaitForSync these include the initial list. Flush does not wait for later events.
//
// It returns the cause of ctx, or ErrStopped if the informer stopped and dropped some of these events. Do not
// call it from an event handler: it would wait for its own return.
func (i *Informer) Flush(ctx context.Context) error { return i.core.Flush(ctx) }

// Named returns an event handler that forwards to handler and has a name, which appears in status.Handler and
// in errors. The default name is the Go type, which several handlers may share. Named, MetadataOnly, Coalesce
// and EveryEvent can be combined in any order.
func Named(name string, handler cache.ResourceEventHandler) cache.ResourceEventHandler {
	return wrap(handler, func(w wrapper) cache.ResourceEventHandler { return namedHandler{w, name} })
}

// wrapper forwards to an event handler. Structs that embed it add a property that informers look for.
type wrapper struct{ cache.ResourceEventHandler }

// Unwrap returns the handler for the informer, which calls it in place of the wrapper.
func (w wrapper) Unwrap() cache.ResourceEventHandler { return w.ResourceEventHandler }

// wrap returns nil for a nil handler, which informers reject.
func wrap(handler cache.ResourceEventHandler,
	with func(wrapper) cache.ResourceEventHandler) cache.ResourceEventHandler {
	if handler == nil {
		return nil
	}
	return with(wrapper{handler})
}

type namedHandler struct {
	wrapper
	name string
}

func (n namedHandler) HandlerName() string { return n.name }

// MetadataOnly returns an event handler for callers that need only metadata, such as controllers that put
// keys into a queue. No object is decoded for it. It forwards to handler, but the objects are not
// *unstructured.Unstructured. Each is a metav1.Object, a runtime.Object and a PackedObject, so
// cache.MetaNamespaceKeyFunc, meta.Accessor and controller-runtime's handlers accept it. Missed deletions
// arrive as cache.DeletedFinalStateUnknown as usual.
//
// Reading the name, namespace, UID, resource version, labels and kind costs almost nothing. The other getters
// parse only their field; the first one of a compressed object decompresses it. The results do not pin the
// object in memory. Setters panic. With StorageObject the handler receives decoded objects.
//
// The events of an object are merged while they wait, see Coalesce. Wrap the handler in EveryEvent to prevent
// it. In an informer with a shard they are merged only with Coalesce, so that the handler is notified of
// deletions of objects that another replica has handled.
func MetadataOnly(handler cache.ResourceEventHandler) cache.ResourceEventHandler {
	return wrap(handler, func(w wrapper) cache.ResourceEventHandler { return metadataHandler{w} })
}

type metadataHandler struct{ wrapper }

// TakesUndecoded marks the handler for the informer.
func (metadataHandler) TakesUndecoded() {}

// Coalesce returns an event handler that forwards to handler. Its queue has at most one event per object. A
// slow handler then needs memory in proportion to the number of objects, not of events
// (TestStalledHandlerIsBounded). It suits handlers that depend on the present state, such as controllers.
//
// An event that arrives while another of the object waits is merged with it:
//   - Updates become one update, from the last state that the handler received to the latest.
//   - An addition and updates become an addition of the latest state. It keeps isInInitialList.
//   - An addition and a deletion cancel each other out: the handler receives neither.
//   - An update and a deletion become the deletion.
//   - A deletion and an addition of the same object (same UID), which left the selection and came back,
//     become an update. If the addition has another UID or belongs to an initial list, both arrive.
//   - An object that left the shard, came back and was deleted is only deleted.
//
// The order of different objects is that of their first waiting events. HasSynced, Flush and resyncs work as
// without Coalesce. FuzzCoalesce compares handlers with and without it. status.Handler.Coalesced counts the
// events that did not arrive.
func Coalesce(handler cache.ResourceEventHandler) cache.ResourceEventHandler {
	return withCoalescing(handler, true)
}

// EveryEvent returns an event handler that forwards to handler and receives every event, even if it is
// MetadataOnly. Of several calls of Coalesce and EveryEvent around a handler the outermost applies.
func EveryEvent(handler cache.ResourceEventHandler) cache.ResourceEventHandler {
	return withCoalescing(handler, false)
}

func withCoalescing(handler cache.ResourceEventHandler, merge bool) cache.ResourceEventHandler {
	return wrap(handler, func(w wrapper) cache.ResourceEventHandler { return coalescingHandler{w, merge} })
}

type coalescingHandler struct {
	wrapper
	merge bool
}

// CoalescesEvents chooses for the informer.
func (c coalescingHandler) CoalescesEvents() bool { return c.merge }

// WithLeftShard returns an event handler that forwards to handler and implements sharding.LeftShardHandler.
func WithLeftShard(handler cache.ResourceEventHandler, leftShard func(obj any)) cache.ResourceEventHandler {
	return wrap(handler, func(w wrapper) cache.ResourceEventHandler { return leftShardHandler{w, leftShard} })
}

type leftShardHandler struct {
	wrapper
	leftShard func(obj any)
}

func (w leftShardHandler) OnLeftShard(obj any) { w.leftShard(obj) }

var _ sharding.LeftShardHandler = leftShardHandler{}
