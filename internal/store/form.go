package store

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/packed"
)

// Form defines how a Store stores objects. Its methods are safe for concurrent use and are called without
// locks.
type Form interface {
	// Packer returns the Packer for objects that arrive as JSON. Item accepts its results.
	Packer() *packed.Packer
	// ForTransform returns an arriving object as transforms receive it, without the pruned fields. The caller
	// can change it if it can change the object itself.
	ForTransform(object any) any
	// Item returns the stored form of an arriving object or of an item. The object must not be changed
	// afterwards.
	Item(object any) Item
	// ListForm returns the form in which an item of a list, watch-list or persisted content is buffered until
	// the list is complete.
	ListForm(item Item) Item
	// Object returns the object for readers, which is shared and read-only.
	Object(item Item) any
	// PeekObject is Object without counting as a read. It is used for handlers and index functions.
	PeekObject(item Item) any
	// Same reports whether two items are known to be immutable and to have the same content.
	Same(a, b Item) bool
}

// Objects returns the Form that stores objects decoded. It removes the fields that pruner selects, in a copy;
// pruner can be nil. Objects that are neither packed nor unstructured are stored unchanged.
func Objects(pruner *packed.Pruner) Form { return &decodedForm{packer: packed.NewPacker(pruner)} }

type decodedForm struct{ packer *packed.Packer }

func (f *decodedForm) Packer() *packed.Packer { return f.packer }
func (f *decodedForm) ForTransform(object any) any {
	return decodeForTransform(object, f.packer.Pruner())
}

func (f *decodedForm) Item(object any) Item {
	return decodeForTransform(object, f.packer.Pruner())
}

func (f *decodedForm) ListForm(item Item) Item  { return item }
func (f *decodedForm) Object(item Item) any     { return item }
func (f *decodedForm) PeekObject(item Item) any { return item }
func (f *decodedForm) Same(Item, Item) bool     { return false }

// decodedOnce returns an item decoded for one pass of index functions over all objects. It does not publish
// the decoded copy, because the weak pointer would outlive it.
func (s *Store) decodedOnce(item Item) any {
	if o, ok := item.(*packed.Object); ok && o.Decoded() == nil {
		if u, err := o.Decode(); err == nil {
			return u
		}
	}
	return s.form.PeekObject(item)
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
