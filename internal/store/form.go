package store

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/packed"
)

// Form is how a Store keeps objects. Its methods are safe for concurrent use, and are called without locks.
type Form interface {
	// Open returns an arriving object in the form that transforms take, for the caller to change.
	Open(object any) any
	// Item returns what is kept of an object that arrives, or of an item. The object must not be changed any more.
	Item(object any) Item
	// Object returns the object that readers and handlers get: shared and read-only.
	Object(item Item) any
	// Same reports whether two items are known to show the same and to be immutable.
	Same(a, b Item) bool
}

// Objects returns the Form that keeps objects decoded, as they come. Packed ones are decoded on arrival. What
// pruner leaves out, if it is not nil, is left out of a copy.
func Objects(pruner *packed.Pruner) Form { return &objects{pruner} }

type objects struct{ pruner *packed.Pruner }

func (f *objects) Open(object any) any { return opened(object) }

func (f *objects) Item(object any) Item {
	object = opened(object)
	if u, ok := object.(*unstructured.Unstructured); ok && f.pruner != nil {
		return f.pruner.Pruned(u)
	}
	return object
}

func (f *objects) Object(item Item) any { return item }

func (f *objects) Same(Item, Item) bool { return false }

// opened returns a packed object decoded, and anything else as it is.
func opened(object any) any {
	o, ok := object.(*packed.Object)
	if !ok {
		return object
	}
	u, err := o.Decode()
	if err != nil {
		return o.Unstructured() // which reports the damage, and makes do
	}
	return u
}
