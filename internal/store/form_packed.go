package store

import (
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/packed"
)

// Packed is the Form that keeps objects as JSON, compressed or not. What is neither packed nor an
// *unstructured.Unstructured is kept as it is: transforms may return anything.
type Packed struct {
	packer *packed.Packer
	press  *press // nil: nothing is compressed
	// adaptive says that objects are compressed when they have not been read for a while: by Store.Sweep, or
	// on arrival while eager is set.
	adaptive bool
	eager    atomic.Bool
	// compressLists says that an adaptive form compresses listed objects when they arrive. listed counts the
	// uncompressed bytes of the present list.
	compressLists bool
	listed        atomic.Int64
	// metadataOnly says that objects are cut down to their metadata.
	metadataOnly bool

	hits, misses atomic.Int64
}

// NewPacked returns a Form that leaves out what pruner does (nil: nothing), and compresses with what trainer
// makes (nil: not at all).
func NewPacked(pruner *packed.Pruner, trainer packed.Trainer) *Packed {
	f := &Packed{packer: packed.NewPacker(pruner)}
	if trainer != nil {
		f.press = newPress(trainer)
		f.packer.OnList(f.compressListed)
	}
	return f
}

// NewAdaptive is NewPacked for objects that are compressed in the background, by Store.Sweep.
func NewAdaptive(pruner *packed.Pruner, trainer packed.Trainer) *Packed {
	f := NewPacked(pruner, trainer)
	f.adaptive = true
	return f
}

// CompressLists has Listed compress.
func (f *Packed) CompressLists() *Packed {
	f.compressLists = true
	return f
}

// Listed implements Form: an item is compressed if the form compresses lists and the list is large enough. An
// object that the store holds and that is in use stays as it is.
func (f *Packed) Listed(item Item) Item {
	if o, ok := item.(*packed.Object); ok && f.press != nil {
		return f.compressListed(o)
	}
	return item
}

func (f *Packed) compressListed(o *packed.Object) *packed.Object {
	switch {
	case o.Compressed():
		return o
	case !f.adaptive:
		return f.press.compress(o)
	case !f.compressLists || f.listed.Add(int64(o.Len())) < worthwhile:
		return o
	}
	if use := o.Use(); use.Used || use.Stays {
		return o
	}
	return f.press.compress(o)
}

// CountAgain has Listed count the objects of a list from the first one on once more, unless there are already
// enough.
func (f *Packed) CountAgain() {
	if f.listed.Load() < worthwhile {
		f.listed.Store(0)
	}
}

// listEnds begins another list.
func (f *Packed) listEnds() { f.listed.Store(0) }

// Packer implements Form.
func (f *Packed) Packer() *packed.Packer { return f.packer }

// Open implements Form.
func (f *Packed) Open(object any) any { return open(object, f.packer.Pruner()) }

// Item implements Form.
func (f *Packed) Item(object any) Item {
	if f.metadataOnly {
		object = metadataOf(object)
	}
	var o *packed.Object
	switch object := object.(type) {
	case *packed.Object:
		o = object
	case *unstructured.Unstructured:
		var err error
		if o, err = f.packer.FromUnstructured(object); err != nil {
			return object // a nil pointer, which nobody can ask for its key: that panics, as with client-go
		}
	default:
		return object
	}
	if f.press != nil && (!f.adaptive || f.eager.Load()) {
		o = f.press.compress(o)
	}
	return o
}

// Object implements Form.
func (f *Packed) Object(item Item) any {
	o, ok := item.(*packed.Object)
	if !ok {
		return item
	}
	o.MarkRead()
	return f.shown(o)
}

// Shown implements Form.
func (f *Packed) Shown(item Item) any {
	if o, ok := item.(*packed.Object); ok {
		return f.shown(o)
	}
	return item
}

func (f *Packed) shown(o *packed.Object) *unstructured.Unstructured {
	if u := o.Decoded(); u != nil {
		f.hits.Add(1)
		return u
	}
	f.misses.Add(1)
	return o.Shown()
}

// Same implements Form.
func (f *Packed) Same(a, b Item) bool {
	x, ok := a.(*packed.Object)
	if !ok {
		return false
	}
	y, ok := b.(*packed.Object)
	return ok && (x.Same(y) || f.adaptive && x.SameContent(y))
}

// Decodes counts how often Object found a decoded copy in memory, and how often it had to decode.
func (f *Packed) Decodes() (hits, misses int64) { return f.hits.Load(), f.misses.Load() }

const (
	metadataVersion = "meta.k8s.io/v1"
	metadataKind    = "PartialObjectMetadata"
)

// NewMetadata returns a Form that keeps the metadata of objects, packed, as a server sends it that is asked
// for no more. Whole objects are cut down.
func NewMetadata(pruner *packed.Pruner) *Packed {
	f := NewPacked(pruner, nil)
	f.metadataOnly = true
	return f
}

// metadataOf returns the metadata of an object that arrives.
func metadataOf(object any) any {
	switch object := object.(type) {
	case *packed.Object:
		if object.GetKind() != metadataKind {
			return metadataOf(object.Shown())
		}
	case *unstructured.Unstructured:
		if object != nil && object.GetKind() != metadataKind {
			return &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": metadataVersion, "kind": metadataKind, "metadata": object.Object["metadata"],
			}}
		}
	}
	return object
}

// Pair returns what Shown does for an item before and after an update. Where both have to be decoded, that is
// done in one go, and what has not changed is one and the same in both objects.
func (f *Packed) Pair(before, after Item) (previous, current any) {
	x, packs := before.(*packed.Object)
	y, alsoPacks := after.(*packed.Object)
	if !packs || !alsoPacks || x == y {
		return f.Shown(before), f.Shown(after)
	}
	f.count(x)
	f.count(y)
	return packed.Pair(x, y)
}

// count notes whether an object that is about to be read has to be decoded.
func (f *Packed) count(o *packed.Object) {
	if o.Decoded() != nil {
		f.hits.Add(1)
	} else {
		f.misses.Add(1)
	}
}
