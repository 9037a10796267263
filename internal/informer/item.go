package informer

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/store"
)

// Item is what the store keeps of one object and what the queues carry. meta.Accessor works on it without
// decoding a body.
type Item = store.Item

// IndexNotFoundError says that no index function of that name was ever added.
type IndexNotFoundError = store.IndexNotFoundError

// item transforms an object that the reflector brings, and packs it. The object itself stays as it is: what a
// transform that fails has changed must not be stored, nor be transformed again.
func (g *generation) item(obj any) (Item, error) {
	form := g.informer.store.Form()
	if g.transform != nil {
		opened := form.Open(obj) // which decodes what is packed
		if _, packs := obj.(*packed.Object); !packs {
			opened = copyOf(opened)
		}
		var err error
		if obj, err = g.transformed(opened); err != nil {
			return nil, fmt.Errorf("transforming: %w", err)
		}
	}
	return form.Item(obj), nil
}

// listedItem is item for an object of a list or watch-list, all of which are in memory before the first is
// stored.
func (g *generation) listedItem(obj any) (Item, error) {
	item, err := g.item(obj)
	if err != nil {
		return nil, err
	}
	return g.informer.store.Form().ListForm(item), nil
}

// copyOf returns a copy of what can be copied.
func copyOf(obj any) any {
	if o, ok := obj.(runtime.Object); ok {
		return o.DeepCopyObject()
	}
	return obj
}

// transformed is an object that has been transformed. Where parts select objects by what never changes of
// them, that includes the transform.
func (g *generation) transformed(obj any) (next any, err error) {
	defer store.Recover(&err)
	if !g.informer.options.SelectsObjects {
		return g.transform(obj)
	}
	uid, namespace := uidOf(obj), namespaceOf(obj)
	next, err = g.transform(obj)
	if err == nil && (uidOf(next) != uid || namespaceOf(next) != namespace) {
		return nil, errIdentityChanged
	}
	return next, err
}

// errIdentityChanged is for a transform after which nobody could tell in which part an object is.
var errIdentityChanged = errors.New("it changes the UID or the namespace of an object, by which objects are sharded")

// namespaceOf is empty for what has no metadata.
func namespaceOf(item Item) string {
	if m, err := meta.Accessor(item); err == nil {
		return m.GetNamespace()
	}
	return ""
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
