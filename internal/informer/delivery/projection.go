package delivery

import (
	"fmt"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/store"
)

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

// collectTraits collects the properties of a handler: it has those for which it has a method. Packages that
// do not import this one have such handlers, too.
//
//	HandlerName() string      the name, if it is not empty
//	TakesUndecoded()          it needs only metadata, and receives store items: their setters panic
//	DecodesBecause() string   it takes undecoded objects and decodes them, for a reason that can be empty
//	CoalescesEvents() bool    whether events of an object are merged while they wait. By default, they are
//	                          if it takes undecoded objects, and the informer does not select objects
//	OnLeftShard(any)          called in order for objects that leave the cache without being deleted
//	MarkReduced(any, string)  returns the argument for an object without all fields, and must not change
//	                          it. The string identifies the informer's keep-list
//	Unwrap()                  it only adds properties to the result, which is called in its place
//
// The outermost name, OnLeftShard and CoalescesEvents count.
func collectTraits(handler cache.ResourceEventHandler) handlerTraits {
	traits := handlerTraits{decodesBecause: "it is not wrapped in MetadataOnly", coalescingByDefault: true}
	for {
		if n, ok := handler.(interface{ HandlerName() string }); ok && traits.name == "" {
			traits.name = n.HandlerName()
		}
		if _, ok := handler.(interface{ TakesUndecoded() }); ok {
			traits.undecoded, traits.decodesBecause = true, ""
		}
		if d, ok := handler.(interface{ DecodesBecause() string }); ok {
			traits.decodesBecause = d.DecodesBecause()
		}
		if c, ok := handler.(interface{ CoalescesEvents() bool }); ok && traits.coalescingByDefault {
			traits.coalescing, traits.coalescingByDefault = c.CoalescesEvents(), false
		}
		if d, ok := handler.(interface{ OnLeftShard(obj any) }); ok && traits.onLeftShard == nil {
			traits.onLeftShard = d.OnLeftShard
		}
		if m, ok := handler.(interface{ MarkReduced(any, string) any }); ok {
			traits.markReduced = m.MarkReduced
		}
		traits.handler = handler
		w, ok := handler.(interface {
			Unwrap() cache.ResourceEventHandler
		})
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
	// object converts an item to an argument of OnAdd and OnDelete.
	object func(store.Item) any
	// pair converts the items before and after an update.
	pair func(before, after store.Item) (previous, current any)
	// onLeftShard is optional.
	onLeftShard func(obj any)
	// skippedKinds are the kinds of notification that the handler ignores.
	skippedKinds [kindMark]bool
	// decodesBecause is the reason why objects are decoded for the handler; empty if they are not.
	decodesBecause string
}

func newProjection(format store.Format, traits handlerTraits) handlerProjection {
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
	v.pair = func(before, after store.Item) (any, any) { return object(before), object(after) }
	if ok && !traits.undecoded {
		v.pair = packedFormat.Pair
	}
	if traits.markReduced != nil {
		v.markReduced(format.Packer().Pruner(), traits.markReduced)
	}
	return v
}

// markReduced marks the arguments of the handler that the pruner has reduced.
func (p *handlerProjection) markReduced(pruner *packed.Pruner, mark func(object any, keptFields string) any) {
	object, pair, keptFields := p.object, p.pair, pruner.KeptFields()
	marked := func(item store.Item, object any) any {
		if pruner.Reduces(item) {
			return mark(object, keptFields)
		}
		return object
	}
	p.object = func(item store.Item) any { return marked(item, object(item)) }
	p.pair = func(before, after store.Item) (any, any) {
		previous, current := pair(before, after)
		return marked(before, previous), marked(after, current)
	}
}

// undecoded returns the argument of an Undecoded handler. Its getters decompress the item at most once.
func undecoded(item store.Item) any {
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
