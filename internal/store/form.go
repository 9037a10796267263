package store

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/packed"
)

// Form is how a Store keeps objects. Its methods are safe for concurrent use, and are called without locks.
type Form interface {
	// Packer is what packs objects that come as JSON, for Item to take.
	Packer() *packed.Packer
	// Open returns an arriving object in the form that transforms take, without what is left out. It may be
	// changed as far as the object itself may.
	Open(object any) any
	// Item returns what is kept of an object that arrives, or of an item. The object must not be changed any
	// more.
	Item(object any) Item
	// Listed returns the form in which an item of a list, watch-list or persisted content waits until all
	// items are there.
	Listed(item Item) Item
	// Object returns the object that readers and handlers get: shared and read-only.
	Object(item Item) any
	// Shown is Object for what is shown to somebody who has not asked for it, as to handlers and index
	// functions. It does not count as a read.
	Shown(item Item) any
	// Same reports whether two items are known to show the same and to be immutable.
	Same(a, b Item) bool
}

// Objects returns the Form that keeps objects decoded. Others than packed ones are kept as they come, but for
// what pruner leaves out (nil: nothing), which is left out of a copy.
func Objects(pruner *packed.Pruner) Form { return &objects{packer: packed.NewPacker(pruner)} }

type objects struct{ packer *packed.Packer }

func (f *objects) Packer() *packed.Packer { return f.packer }

func (f *objects) Open(object any) any { return open(object, f.packer.Pruner()) }

func (f *objects) Item(object any) Item {
	return open(object, f.packer.Pruner())
}

func (f *objects) Listed(item Item) Item { return item }

func (f *objects) Object(item Item) any { return item }

func (f *objects) Shown(item Item) any { return item }

func (f *objects) Same(Item, Item) bool { return false }

// decodedOnce returns an item decoded for an index function. Where it goes through all objects, copies are
// not kept for others: the weak pointers to them would outlive them.
func (s *Store) decodedOnce(item Item) any {
	if o, ok := item.(*packed.Object); ok && o.Decoded() == nil {
		if u, err := o.Decode(); err == nil {
			return u
		}
	}
	return s.form.Shown(item)
}

// open returns a packed object decoded, and a decoded one without what is left out; others as they are.
func open(object any, pruner *packed.Pruner) any {
	switch object := object.(type) {
	case *packed.Object: // left out already
		u, err := object.Decode()
		if err != nil {
			return object.Shown() // which reports the damage, and makes do
		}
		return u
	case *unstructured.Unstructured:
		if object != nil {
			return pruner.Pruned(object)
		}
	}
	return object
}
