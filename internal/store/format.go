package store

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/packed"
)

// Format defines how a Store stores objects. It is safe for concurrent use, and called without locks.
type Format interface {
	// Packer returns the Packer for objects that arrive as JSON. Item accepts its results.
	Packer() *packed.Packer
	// ForTransform returns an arriving object as transforms receive it, without the pruned fields. The caller
	// can change it if it can change the object itself.
	ForTransform(object any) any
	// Item converts an arriving object, or an item, to the stored item. The object must not change then.
	Item(object any) Item
	// ForList converts an item of a list, a watch-list or persisted content, until the list is complete.
	ForList(item Item) Item
	// Object returns the object for readers, which is shared and read-only.
	Object(item Item) any
	// PeekObject is Object without counting as a read. It is used for handlers and index functions.
	PeekObject(item Item) any
	// Same reports whether two items are known to be immutable and to have the same content.
	Same(a, b Item) bool
}

// Objects returns the Format that stores objects decoded. It removes the fields that pruner selects, in a
// copy; pruner can be nil. Objects that are neither packed nor unstructured are stored unchanged.
func Objects(pruner *packed.Pruner) Format { return &decodedFormat{packer: packed.NewPacker(pruner)} }

type decodedFormat struct{ packer *packed.Packer }

func (f *decodedFormat) Packer() *packed.Packer { return f.packer }
func (f *decodedFormat) ForTransform(object any) any {
	return decodeForTransform(object, f.packer.Pruner())
}

func (f *decodedFormat) Item(object any) Item { return decodeForTransform(object, f.packer.Pruner()) }

func (f *decodedFormat) ForList(item Item) Item   { return item }
func (f *decodedFormat) Object(item Item) any     { return item }
func (f *decodedFormat) PeekObject(item Item) any { return item }
func (f *decodedFormat) Same(Item, Item) bool     { return false }

// decodedOnce returns an item decoded for one pass of index functions over all objects. It does not publish
// the decoded copy, because the weak pointer would outlive it.
func (s *Store) decodedOnce(item Item) any {
	if o, ok := item.(*packed.Object); ok && o.Decoded() == nil {
		if u, err := o.Decode(); err == nil {
			return u
		}
	}
	return s.format.PeekObject(item)
}

// decodeForTransform decodes a packed object and prunes an unstructured one. It returns others unchanged.
func decodeForTransform(object any, pruner *packed.Pruner) any {
	switch object := object.(type) {
	case *packed.Object: // already pruned
		u, err := object.Decode()
		if err != nil {
			return object.PeekUnstructured() // reports the damage and returns the identity
		}
		return u
	case *unstructured.Unstructured:
		if object != nil {
			return pruner.Pruned(object)
		}
	}
	return object
}
