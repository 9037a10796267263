package store

import (
	"unsafe"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/packed"
)

// Stats describe the memory of a Store: its figures of status.Stats, without those of an informer.
type Stats struct {
	status.Stats
	// PackedBytes is the part of ObjectBytes in packed, uncompressed objects.
	PackedBytes int64
	// trained states that the Dictionary has been trained.
	trained bool
}

// Compressible returns the size of the objects that could be compressed, in bytes. It returns zero if there
// are too few objects to train a compressor.
func (s Stats) Compressible() int64 {
	if !s.trained && s.Objects < samplesToTrain && s.PackedBytes < bytesToTrain {
		return 0
	}
	return s.PackedBytes
}

// Stats returns the store's current size. Its cost does not depend on the number of objects, and it blocks
// neither writers nor readers.
func (s *Store) Stats() Stats {
	current := s.current.Load()
	stats := Stats{
		Stats: status.Stats{
			Objects: current.rows.len, Compressed: current.sizes.compressed,
			ObjectBytes:     current.sizes.packed + s.decoded.bytes(current),
			CompressedBytes: current.sizes.compressedBytes,
		},
		PackedBytes: current.sizes.packed - current.sizes.compressedBytes,
	}
	if f := s.Adaptive(); f != nil {
		stats.trained = f.compressor != nil && f.compressor.isTrained()
	}
	nodes := nodeBytes(&current.rows)
	rows, valueBytes := current.sampleRows()
	stats.TableBytes = nodes + rows
	perRow := float64(nodes) / float64(max(current.rows.len, 1))
	for i := range current.indexes {
		x := &current.indexes[i]
		stats.Indexes = append(stats.Indexes, x.stats(perRow, valueBytes[x.function.id]))
	}
	return stats
}

// rowBytes returns the size of a row without its values. The key may share the object's memory.
func rowBytes(r *storedRow) int64 {
	if r.isIdentity() {
		return int64(packed.AllocationSize(max(identityKeyOffset+len(keyOf(r)), int(unsafe.Sizeof(*r)))))
	}
	bytes := packed.AllocationSize(int(unsafe.Sizeof(*r)))
	if o := r.object.Load(); o == nil || unsafe.StringData(o.Key()) != unsafe.StringData(r.key) {
		bytes += packed.AllocationSize(len(r.key))
	}
	return int64(bytes)
}

// trieBytes returns the size of a trie's nodes.
func trieBytes[E any](t *trie[E]) int64 {
	if t.inner != nil {
		return t.inner.bytes()
	}
	if t.leaf != nil {
		return t.leaf.bytes()
	}
	return 0
}

func (n *innerNode[E]) bytes() int64 {
	bytes := int64(packed.AllocationSize(int(unsafe.Sizeof(*n))))
	n.forEachDistinct(func(child *innerNode[E], l *leafNode[E]) bool {
		if child != nil {
			bytes += child.bytes()
		} else {
			bytes += l.bytes()
		}
		return true
	})
	return bytes
}

func (l *leafNode[E]) bytes() int64 {
	size, entries := int(unsafe.Sizeof(*l)), cap(l.entries)*int(unsafe.Sizeof(l.entries[0]))
	if len(l.entries) <= maxLeafEntries {
		return int64(packed.AllocationSize(size + entries)) // see makeLeaf
	}
	return int64(packed.AllocationSize(size) + packed.PointerAllocationSize(entries))
}

// objectSizes are totals of a snapshot's objects, updated with each change of a row.
type objectSizes struct {
	// packed is the size of packed objects in bytes. compressedBytes is the size of the compressed ones.
	packed, compressedBytes int64
	compressed              int
	// decoded is the number of objects that are not packed.
	decoded int
	// replaced is the number of rows added or removed so far.
	replaced int64
}

// addRow adds the item of a row (delta = 1), or removes it (delta = -1).
func (z *objectSizes) addRow(r *storedRow, delta int) {
	z.replaced++
	if o := r.packed(); o != nil {
		z.countPacked(o, delta)
	} else if !r.isIdentity() {
		z.decoded += delta
	}
}

func (z *objectSizes) countPacked(o *packed.Object, delta int) {
	size := int64(delta * o.Size())
	z.packed += size
	if o.Compressed() {
		z.compressed += delta
		z.compressedBytes += size
	}
}
