package store

import (
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/packed"
)

// Packed is the Format that stores objects as JSON, which can be compressed. Objects from transforms that are
// neither packed nor unstructured are stored unchanged.
type Packed struct {
	packer     *packed.Packer
	compressor *Dictionary // nil if nothing is compressed
	// adaptive formats compress objects that have not been read recently, by Store.Sweep. They compress
	// arriving objects while compressOnArrival is set.
	adaptive          bool
	compressOnArrival atomic.Bool
	// compressLists makes an adaptive format compress listed objects when they arrive. listedBytes is the
	// uncompressed length of the current list in bytes.
	compressLists bool
	listedBytes   atomic.Int64
	// metadataOnly reduces objects to their metadata.
	metadataOnly bool
	// identitiesOnly makes the store keep nothing of the objects but their identities.
	identitiesOnly bool

	hits, misses atomic.Int64
}

// NewPacked returns a Format that removes the fields that pruner selects, and compresses with a Compressor
// from trainer, which can be a shared Dictionary. Both can be nil.
func NewPacked(pruner *packed.Pruner, trainer packed.Trainer) *Packed {
	f := &Packed{packer: packed.NewPacker(pruner)}
	if trainer != nil {
		f.compressor = dictionaryOf(trainer)
		f.packer.SetListConversion(f.compressListed)
	}
	return f
}

// NewAdaptive returns a Format like NewPacked's, but Store.Sweep compresses its objects in the background.
func NewAdaptive(pruner *packed.Pruner, trainer packed.Trainer) *Packed {
	f := NewPacked(pruner, trainer)
	f.adaptive = true
	return f
}

// CompressLists makes ForList compress.
func (f *Packed) CompressLists() *Packed {
	f.compressLists = true
	return f
}

// ForList implements Format. It compresses the item if the format compresses lists and the list is large
// enough, except for stored objects that are in use.
func (f *Packed) ForList(item Item) Item {
	if o, ok := item.(*packed.Object); ok && f.compressor != nil {
		return f.compressListed(o)
	}
	return item
}

func (f *Packed) compressListed(o *packed.Object) *packed.Object {
	switch {
	case o.Compressed():
		return o
	case !f.adaptive:
		return f.compressor.compress(o)
	case !f.compressLists || f.listedBytes.Add(int64(o.Len())) < minSavedBytes && !f.compressor.isTrained():
		return o // with a Dictionary, compression costs no memory
	}
	if use := o.Usage(); use.InUse || use.Incompressible {
		return o
	}
	return f.compressor.compress(o)
}

// RestartList makes ForList measure the current list from its first object again, unless it is large enough.
func (f *Packed) RestartList() {
	if f.listedBytes.Load() < minSavedBytes {
		f.listedBytes.Store(0)
	}
}

func (f *Packed) Packer() *packed.Packer { return f.packer }

func (f *Packed) ForTransform(object any) any { return decodeForTransform(object, f.packer.Pruner()) }

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
			return object // a nil pointer; reading its key panics, as with client-go
		}
	default:
		return object
	}
	if f.compressor != nil && (!f.adaptive || f.compressOnArrival.Load()) {
		o = f.compressor.compress(o)
	}
	return o
}

func (f *Packed) Object(item Item) any {
	o, ok := item.(*packed.Object)
	if !ok {
		return item
	}
	o.MarkRead()
	return f.decode(o)
}

func (f *Packed) PeekObject(item Item) any {
	if o, ok := item.(*packed.Object); ok {
		return f.decode(o)
	}
	return item
}

func (f *Packed) decode(o *packed.Object) *unstructured.Unstructured {
	if u := o.Decoded(); u != nil {
		f.hits.Add(1)
		return u
	}
	f.misses.Add(1)
	return o.PeekUnstructured()
}

func (f *Packed) Same(a, b Item) bool {
	x, ok := a.(*packed.Object)
	if !ok {
		return false
	}
	y, ok := b.(*packed.Object)
	if ok && f.identitiesOnly {
		return x.UID() == y.UID() && x.Version() == y.Version() && x.Version() != ""
	}
	return ok && (x.SameBytes(y) || f.adaptive && x.SameContent(y))
}

// Decodes returns how many reads found a decoded copy in memory (hits), and how many had to decode (misses).
func (f *Packed) Decodes() (hits, misses int64) { return f.hits.Load(), f.misses.Load() }

const (
	metadataVersion = "meta.k8s.io/v1"
	metadataKind    = "PartialObjectMetadata"
)

// NewMetadata returns a Format that stores PartialObjectMetadata, packed. Complete objects are reduced to it.
func NewMetadata(pruner *packed.Pruner) *Packed {
	f := NewPacked(pruner, nil)
	f.metadataOnly = true
	return f
}

// NewIdentities returns a Format for a Store that stores only the key, UID and resource version of objects.
// Stored items are identities (see packed.Object.IsIdentity). Arriving objects are packed, for handlers.
func NewIdentities(pruner *packed.Pruner) *Packed {
	f := NewPacked(pruner, nil)
	f.identitiesOnly = true
	return f
}

func metadataOf(object any) any {
	switch object := object.(type) {
	case *packed.Object:
		if object.GetKind() != metadataKind {
			return metadataOf(object.PeekUnstructured())
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

// Pair returns the results of PeekObject for an item before and after an update. If both have to be decoded,
// they are decoded together and share unchanged parts.
func (f *Packed) Pair(before, after Item) (previous, current any) {
	x, packs := before.(*packed.Object)
	y, alsoPacks := after.(*packed.Object)
	if !packs || !alsoPacks || x == y {
		return f.PeekObject(before), f.PeekObject(after)
	}
	f.countRead(x)
	f.countRead(y)
	return packed.PeekPair(x, y)
}

// countRead counts a read as a hit or a miss.
func (f *Packed) countRead(o *packed.Object) {
	if o.Decoded() != nil {
		f.hits.Add(1)
	} else {
		f.misses.Add(1)
	}
}
