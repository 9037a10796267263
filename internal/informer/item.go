package informer

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/store"
)

// Item is a stored object. meta.Accessor works on it without decoding.
type Item = store.Item

// ErrNotStored is returned by reads of an informer that stores no objects.
var ErrNotStored = store.ErrNotStored

// item transforms an object from the reflector, and converts it to the format of the store. The transform
// receives a copy, because it may fail after it has changed the object.
func (g *incarnation) item(obj any) (Item, error) {
	format := g.informer.store.Format()
	if g.transform != nil {
		var err error
		if obj, err = g.applyTransform(obj); err != nil {
			return nil, fmt.Errorf("transforming: %w", err)
		}
	}
	return format.Item(obj), nil
}

// listedItem is like item, for an object of a list or watch-list.
func (g *incarnation) listedItem(obj any) (Item, error) {
	item, err := g.item(obj)
	if err != nil {
		return nil, err
	}
	return g.informer.store.Format().ForList(item), nil
}

// deepCopy returns a copy of an object. An unstructured one may have values of any type from a transform.
func deepCopy(obj any) any {
	switch obj := obj.(type) {
	case *unstructured.Unstructured:
		return packed.Copy(obj)
	case runtime.Object:
		return obj.DeepCopyObject()
	}
	return obj
}

// applyTransform calls the transform with a copy. It returns an error if the transform changes a field by
// which partitions select objects.
func (g *incarnation) applyTransform(original any) (next any, err error) {
	defer store.RecoverError(&err)
	obj := g.informer.store.Format().ForTransform(original) // decodes packed objects
	if _, isPacked := original.(*packed.Object); !isPacked {
		obj = deepCopy(obj)
	}
	if !g.informer.selectsObjects.Load() {
		return g.transform(obj)
	}
	uid, namespace := store.UIDOf(obj), store.NamespaceOf(obj)
	next, err = g.transform(obj)
	if err == nil && (store.UIDOf(next) != uid || store.NamespaceOf(next) != namespace) {
		return nil, errIdentityChanged
	}
	return next, err
}

var errIdentityChanged = errors.New("the transform changes the UID or namespace of a sharded object")

func withKey(item Item) (store.KeyedItem, error) {
	key, err := store.KeyOf(item)
	return store.KeyedItem{Key: key, ResourceVersion: store.OwnedVersionOf(item), Item: item}, err
}
