package informer

import (
	"fmt"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/store"
)

// UndecodedHandler is implemented by event handlers that only need the metadata of objects. They receive
// store items. The getters of metav1.Object and runtime.Object work on such objects; the setters panic.
type UndecodedHandler interface {
	cache.ResourceEventHandler
	// TakesUndecoded is never called.
	TakesUndecoded()
}

// DecodingHandler is implemented by UndecodedHandlers that decode objects themselves.
type DecodingHandler interface {
	// DecodesBecause returns the reason, which can be empty.
	DecodesBecause() string
}

// MarkingHandler is implemented by event handlers that mark objects without all fields, for which the
// informer's keep-list has removed some.
type MarkingHandler interface {
	cache.ResourceEventHandler
	// MarkReduced returns the object to call the handler with. It must not change its argument. keptFields
	// identifies the keep-list.
	MarkReduced(object any, keptFields string) any
}

// HandlerWrapper is implemented by event handlers that only add properties to another one, which is called in
// their place: UndecodedHandler, CoalescingHandler, NamedHandler, MarkingHandler or LeftShardHandler.
type HandlerWrapper interface {
	cache.ResourceEventHandler
	// Unwrap returns the other handler.
	Unwrap() cache.ResourceEventHandler
}

// CoalescingHandler is implemented by event handlers that choose whether events of an object are merged while
// they wait in the handler's queue. The default is to merge them for UndecodedHandlers of informers that do
// not select objects.
type CoalescingHandler interface {
	cache.ResourceEventHandler
	// CoalescesEvents returns the choice.
	CoalescesEvents() bool
}

// NamedHandler is implemented by event handlers with a name.
type NamedHandler interface {
	cache.ResourceEventHandler
	// HandlerName returns the name. It can be empty.
	HandlerName() string
}

// LeftShardHandler is implemented by event handlers that are notified of objects that leave the cache without
// being deleted. Other handlers are not.
type LeftShardHandler interface {
	cache.ResourceEventHandler
	// OnLeftShard is called in order with the other methods.
	OnLeftShard(obj any)
}

// handlerTraits is an event handler with the properties of its wrappers.
type handlerTraits struct {
	handler        cache.ResourceEventHandler
	name           string // its Go type by default
	undecoded      bool
	decodesBecause string        // reason why the handler needs decoded objects; empty if it does not
	onLeftShard    func(obj any) // may be nil
	// markReduced may be nil.
	markReduced func(object any, keptFields string) any
	// coalescing is true if events are merged, coalescingByDefault if no wrapper has chosen.
	coalescing, coalescingByDefault bool
}

// collectTraits collects the properties of wrappers. The outermost name, OnLeftShard and Coalescing count.
func collectTraits(handler cache.ResourceEventHandler) handlerTraits {
	traits := handlerTraits{decodesBecause: "it is not wrapped in MetadataOnly", coalescingByDefault: true}
	for {
		if n, ok := handler.(NamedHandler); ok && traits.name == "" {
			traits.name = n.HandlerName()
		}
		if _, ok := handler.(UndecodedHandler); ok {
			traits.undecoded, traits.decodesBecause = true, ""
		}
		if d, ok := handler.(DecodingHandler); ok {
			traits.decodesBecause = d.DecodesBecause()
		}
		if c, ok := handler.(CoalescingHandler); ok && traits.coalescingByDefault {
			traits.coalescing, traits.coalescingByDefault = c.CoalescesEvents(), false
		}
		if d, ok := handler.(LeftShardHandler); ok && traits.onLeftShard == nil {
			traits.onLeftShard = d.OnLeftShard
		}
		if m, ok := handler.(MarkingHandler); ok {
			traits.markReduced = m.MarkReduced
		}
		traits.handler = handler
		w, ok := handler.(HandlerWrapper)
		if !ok {
			break
		}
		handler = w.Unwrap()
	}
	if traits.coalescingByDefault {
		traits.coalescing = traits.decodesBecause == ""
	}
	if traits.name == "" {
		traits.name = fmt.Sprintf("%T", traits.handler)
	}
	return traits
}

// handlerProjection converts items to the arguments of a handler.
type handlerProjection struct {
	// object converts an item.
	object func(Item) any
	// pair converts the items before and after an update.
	pair func(before, after Item) (previous, current any)
	// onLeftShard is optional.
	onLeftShard func(obj any)
	// skippedKinds are the kinds of notification that the handler ignores.
	skippedKinds [kindMark]bool
	// decodesBecause is the reason why objects are decoded for the handler; empty if they are not.
	decodesBecause string
}

func (i *Informer) projectionFor(traits handlerTraits) handlerProjection {
	format := i.store.Format()
	v := handlerProjection{object: format.PeekObject, skippedKinds: skippedKindsOf(traits.handler),
		onLeftShard: traits.onLeftShard}
	v.skippedKinds[kindLeftShard] = traits.onLeftShard == nil
	packedFormat, ok := format.(*store.Packed)
	if (ok || traits.undecoded) && !(v.skippedKinds[kindAdd] && v.skippedKinds[kindUpdate] &&
		v.skippedKinds[kindDelete]) {
		v.decodesBecause = traits.decodesBecause
	}
	if traits.undecoded {
		v.object = undecoded
	}
	object := v.object
	v.pair = func(before, after Item) (any, any) { return object(before), object(after) }
	if ok && !traits.undecoded {
		v.pair = packedFormat.Pair
	}
	if traits.markReduced != nil {
		v.markReduced(format.Packer().Pruner(), traits.markReduced)
	}
	return v
}

// markReduced marks the arguments of the handler that the pruner has reduced.
func (p *handlerProjection) markReduced(pruner *packed.Pruner,
	mark func(object any, keptFields string) any) {
	object, pair, keptFields := p.object, p.pair, pruner.KeptFields()
	marked := func(item Item, object any) any {
		if pruner.Reduces(item) {
			return mark(object, keptFields)
		}
		return object
	}
	p.object = func(item Item) any { return marked(item, object(item)) }
	p.pair = func(before, after Item) (any, any) {
		previous, current := pair(before, after)
		return marked(before, previous), marked(after, current)
	}
}

// undecoded returns the argument of an Undecoded handler. Its getters decompress the item at most once.
func undecoded(item Item) any {
	if o, ok := item.(*packed.Object); ok && o.Compressed() {
		return o.MetadataReader()
	}
	return item
}

// skippedKindsOf returns the kinds of notification that a handler ignores. No objects are decoded for them.
func skippedKindsOf(handler cache.ResourceEventHandler) (ignored [kindMark]bool) {
	switch h := handler.(type) {
	case cache.ResourceEventHandlerFuncs:
		ignored[kindAdd], ignored[kindUpdate], ignored[kindDelete] = h.AddFunc == nil, h.UpdateFunc == nil,
			h.DeleteFunc == nil
	case cache.ResourceEventHandlerDetailedFuncs:
		ignored[kindAdd], ignored[kindUpdate], ignored[kindDelete] = h.AddFunc == nil, h.UpdateFunc == nil,
			h.DeleteFunc == nil
	}
	ignored[kindLostDeletion] = ignored[kindDelete]
	return ignored
}
