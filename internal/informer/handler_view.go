package informer

import (
	"fmt"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/store"
)

// Undecoded is implemented by event handlers that need no more of an object than its metadata. They get store
// items: what metav1.Object and runtime.Object have getters for works, setters do not.
type Undecoded interface {
	cache.ResourceEventHandler
	// TakesUndecoded is never called.
	TakesUndecoded()
}

// Wrapper is implemented by event handlers that only say something about another one, which is then called in
// their place: that it is Undecoded, or Named.
type Wrapper interface {
	cache.ResourceEventHandler
	// Unwrap returns the other handler.
	Unwrap() cache.ResourceEventHandler
}

// Named is implemented by event handlers that have a name for people.
type Named interface {
	cache.ResourceEventHandler
	// HandlerName returns the name, or nothing.
	HandlerName() string
}

// Departed is implemented by event handlers that are told of objects that leave the cache and exist. Others
// are not told of them.
type Departed interface {
	cache.ResourceEventHandler
	// OnDeparted is called in turn with the methods of the handler.
	OnDeparted(obj any)
}

// unwrapped is an event handler with what its wrappers say.
type unwrapped struct {
	handler   cache.ResourceEventHandler
	name      string // by default its Go type
	undecoded bool
	departed  func(obj any) // nil: it is not told
}

// unwrap collects what wrappers say. Of several names the outermost counts, and of several that are Departed.
func unwrap(handler cache.ResourceEventHandler) unwrapped {
	var all unwrapped
	for {
		if n, ok := handler.(Named); ok && all.name == "" {
			all.name = n.HandlerName()
		}
		if _, ok := handler.(Undecoded); ok {
			all.undecoded = true
		}
		if d, ok := handler.(Departed); ok && all.departed == nil {
			all.departed = d.OnDeparted
		}
		all.handler = handler
		w, ok := handler.(Wrapper)
		if !ok {
			break
		}
		handler = w.Unwrap()
	}
	if all.name == "" {
		all.name = fmt.Sprintf("%T", all.handler)
	}
	return all
}

// view turns items into what a handler gets.
type view struct {
	object func(Item) any
	// pair is object for the items before and after an update.
	pair func(before, after Item) (previous, current any)
	// departed is what is told of objects that have left.
	departed func(obj any)
	// ignored are the kinds of notification that the handler does nothing with.
	ignored [kindMark]bool
}

// viewFor returns the view of a handler.
func (i *Informer) viewFor(how unwrapped) view {
	form := i.store.Form()
	v := view{object: form.PeekObject, ignored: ignoredBy(how.handler), departed: how.departed}
	v.ignored[kindDeparted] = how.departed == nil
	if how.undecoded {
		v.object = func(item Item) any { return item }
	} else if packs, ok := form.(*store.Packed); ok {
		v.pair = packs.Pair
		return v
	}
	v.pair = func(before, after Item) (any, any) { return v.object(before), v.object(after) }
	return v
}

// ignoredBy tells which kinds of notification a handler does nothing with, so that nothing has to be decoded
// for them.
func ignoredBy(handler cache.ResourceEventHandler) (ignored [kindMark]bool) {
	switch h := handler.(type) {
	case cache.ResourceEventHandlerFuncs:
		ignored[kindAdd], ignored[kindUpdate], ignored[kindDelete] = h.AddFunc == nil, h.UpdateFunc == nil,
			h.DeleteFunc == nil
	case cache.ResourceEventHandlerDetailedFuncs:
		ignored[kindAdd], ignored[kindUpdate], ignored[kindDelete] = h.AddFunc == nil, h.UpdateFunc == nil,
			h.DeleteFunc == nil
	}
	ignored[kindLost] = ignored[kindDelete]
	return ignored
}
