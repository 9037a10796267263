package dynamicinformer

import (
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/informer"
)

// Handlers returns the event handlers that the informer has now, in the order in which they were added. Those
// of subscriptions are among them.
func (i *Informer) Handlers() []status.Handler {
	registrations := i.core.Registrations()
	all := make([]status.Handler, 0, len(registrations))
	for _, r := range registrations {
		all = append(all, status.Handler{Name: r.Name(), Depth: r.Depth(), Lag: r.Lag(),
			Synced: r.HasSynced()})
	}
	return all
}

// Named returns an event handler that is called as handler is, and has a name in status.Handler and in
// errors. Without one the name is the Go type, which many handlers may share. It goes with MetadataOnly in
// either order.
func Named(name string, handler cache.ResourceEventHandler) cache.ResourceEventHandler {
	if handler == nil {
		return nil // which informers refuse
	}
	return named{handler, name}
}

type named struct {
	cache.ResourceEventHandler
	name string
}

var (
	_ informer.Named   = named{}
	_ informer.Wrapper = named{}
)

// HandlerName implements informer.Named.
func (n named) HandlerName() string { return n.name }

// Unwrap implements informer.Wrapper.
func (n named) Unwrap() cache.ResourceEventHandler { return n.ResourceEventHandler }

// MetadataOnly returns an event handler that makes do with the metadata of objects, as most controllers do
// that put keys into a queue: for it, nothing is decoded. It is called as handler would be, but what it gets
// is not an *unstructured.Unstructured. It is a metav1.Object and a runtime.Object, so that
// cache.MetaNamespaceKeyFunc, meta.Accessor and controller-runtime's handlers work on it. Where a deletion
// was missed, it is in a cache.DeletedFinalStateUnknown as usual.
//
// Name, namespace, UID, resource version, labels and kind cost next to nothing, and keeping them does not
// keep the object in memory; other getters decode the object. What would set something panics. It is a
// PackedObject, whose JSON can be read. With StorageObject handlers get the decoded objects all the same.
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

// Departed is implemented by event handlers that are told of objects that leave the shard (see Shard). Those
// objects exist, as far as is known: what was made for them must not be undone. Calls come in turn with those
// of the other methods. It is found through Named and MetadataOnly; other wrappers have to implement it
// themselves.
type Departed interface {
	cache.ResourceEventHandler
	// OnDeparted gets the last state that was seen of an object that has left.
	OnDeparted(obj any)
}

// WithDeparted returns an event handler that is called as handler is, and is Departed.
func WithDeparted(handler cache.ResourceEventHandler, departed func(obj any)) cache.ResourceEventHandler {
	if handler == nil {
		return nil // which informers refuse
	}
	return withDeparted{handler, departed}
}

type withDeparted struct {
	cache.ResourceEventHandler
	departed func(obj any)
}

var (
	_ Departed         = withDeparted{}
	_ informer.Wrapper = withDeparted{}
)

// OnDeparted implements Departed.
func (w withDeparted) OnDeparted(obj any) { w.departed(obj) }

// Unwrap implements informer.Wrapper.
func (w withDeparted) Unwrap() cache.ResourceEventHandler { return w.ResourceEventHandler }
