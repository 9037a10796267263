package informer

import (
	"fmt"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/store"
)

// Item is what the store keeps of one object and what the queues carry. meta.Accessor works on it without decoding
// a body.
type Item = store.Item

// IndexNotFoundError says that no index function of that name was ever added.
type IndexNotFoundError = store.IndexNotFoundError

// Undecoded is implemented by event handlers that need no more of an object than its metadata. They get store
// items: what metav1.Object and runtime.Object have getters for works, setters do not.
type Undecoded interface {
	cache.ResourceEventHandler
	// TakesUndecoded is never called.
	TakesUndecoded()
}

// view turns items into what a handler gets.
type view struct {
	object func(Item) any
	// pair is object for the items before and after an update.
	pair func(before, after Item) (previous, current any)
	// deaf are the kinds of notification that the handler does nothing with.
	deaf [kindMark]bool
}

// viewFor returns what the handler sees.
func (i *Informer) viewFor(handler cache.ResourceEventHandler) view {
	form := i.store.Form()
	v := view{object: form.Object, deaf: deafOf(handler)}
	if _, undecoded := handler.(Undecoded); undecoded {
		v.object = func(item Item) any { return item }
	} else if packs, ok := form.(*store.Packed); ok {
		v.pair = packs.Pair
		return v
	}
	v.pair = func(before, after Item) (any, any) { return v.object(before), v.object(after) }
	return v
}

// deafOf tells which kinds of notification a handler does nothing with, so that nothing has to be decoded for them.
func deafOf(handler cache.ResourceEventHandler) (deaf [kindMark]bool) {
	switch h := handler.(type) {
	case cache.ResourceEventHandlerFuncs:
		deaf[kindAdd], deaf[kindUpdate], deaf[kindDelete] = h.AddFunc == nil, h.UpdateFunc == nil, h.DeleteFunc == nil
	case cache.ResourceEventHandlerDetailedFuncs:
		deaf[kindAdd], deaf[kindUpdate], deaf[kindDelete] = h.AddFunc == nil, h.UpdateFunc == nil, h.DeleteFunc == nil
	}
	deaf[kindLost] = deaf[kindDelete]
	return deaf
}

// item transforms an object that the reflector brings, and packs it.
func (g *generation) item(obj any) (Item, error) {
	form := g.informer.store.Form()
	if g.transform != nil {
		var err error
		if obj, err = g.transform(form.Open(obj)); err != nil {
			return nil, fmt.Errorf("transforming: %w", err)
		}
	}
	return form.Item(obj), nil
}

// keyed adds the key and the resource version to an item.
func (i *Informer) keyed(item Item) (store.Keyed, error) {
	key, err := i.keyOf(item)
	return store.Keyed{Key: key, ResourceVersion: resourceVersion(item), Item: item}, err
}

// keyOf computes the storage key.
func (i *Informer) keyOf(obj any) (string, error) {
	key, err := i.options.KeyFunc(obj)
	if err != nil {
		return "", cache.KeyError{Obj: obj, Err: err}
	}
	return key, nil
}

// keyFunc is the default key function: client-go's, which need not put the key of a packed object together.
func keyFunc(obj any) (string, error) {
	if o, ok := obj.(*packed.Object); ok {
		return o.Key(), nil
	}
	return cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
}
