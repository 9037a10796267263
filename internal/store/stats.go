package store

import (
	"math/bits"
	"unsafe"

	"github.com/crdcache/crdcache/internal/packed"
)

// Stats tell what a Store occupies. Bytes are of heap, as allocated; of packed objects and indexes they are
// exact to a few percent, of decoded objects they are extrapolated from a sample.
type Stats struct {
	// Objects counts the objects, Compressed those of them that are compressed.
	Objects, Compressed int
	// ObjectBytes are the objects, without the copies that were decoded for readers, which the garbage
	// collector takes when it needs to.
	ObjectBytes int64
	// CompressedBytes are those of them that are compressed objects.
	CompressedBytes int64
	// TableBytes is what finds the objects by their keys.
	TableBytes int64
	// Indexes are in the order in which they were added.
	Indexes []IndexStats
	// Hits and Misses count the reads of packed objects that found a decoded copy in memory, and those that
	// had to decode.
	Hits, Misses int64
}

// IndexStats tell what an index occupies.
type IndexStats struct {
	Name string
	// Values counts the different values, Entries the objects under them: one that has two values counts
	// twice.
	Values, Entries int
	Bytes           int64
}

// Bytes is the sum of all parts.
func (s Stats) Bytes() int64 {
	sum := s.ObjectBytes + s.TableBytes
	for _, x := range s.Indexes {
		sum += x.Bytes
	}
	return sum
}

// Stats looks at every object and index entry, which takes some 10 ms for 100,000 objects. Writers and
// readers go on meanwhile; what it tells is of the moment of the call, but for index values, of which some
// may be later.
func (s *Store) Stats() Stats {
	now := s.current.Load()
	stats := Stats{Objects: now.rows.len}
	var plain sample
	blocks := map[*packed.Block]bool{}
	for r := range now.rows.all {
		if o := r.object.Load(); o != nil {
			size := int64(sizeOf(o, blocks))
			stats.ObjectBytes += size
			if o.Compressed() {
				stats.Compressed++
				stats.CompressedBytes += size
			}
		} else {
			plain.add(r.other)
		}
		stats.TableBytes += rowBytes(r)
	}
	held := map[*byte]bool{}
	byID := map[int]int64{}
	for r := range now.rows.all {
		vs := r.values()
		if at := unsafe.StringData(string(vs)); vs != "" && !held[at] {
			held[at] = true
			vs.divide(byID)
		}
	}
	stats.ObjectBytes += plain.bytes()
	stats.TableBytes += trieBytes(&now.rows)
	for i := range now.indexes {
		x := &now.indexes[i]
		stats.Indexes = append(stats.Indexes, x.stats(byID[x.function.id]))
	}
	stats.Hits, stats.Misses = s.Decodes()
	return stats
}

// sizeOf is what a packed object occupies. The first one of a block counts for all of it.
func sizeOf(o *packed.Object, known map[*packed.Block]bool) int {
	switch b := o.Block(); {
	case b == nil:
		return o.Size()
	case known[b]:
		return 0
	default:
		known[b] = true
		return b.Held()
	}
}

// rowBytes is what a row occupies, without its values. The key may be a part of the object.
func rowBytes(r *row) int64 {
	bytes := packed.Allocated(int(unsafe.Sizeof(*r)))
	if o := r.object.Load(); o == nil || unsafe.StringData(o.Key()) != unsafe.StringData(r.key) {
		bytes += packed.Allocated(len(r.key))
	}
	return int64(bytes)
}

// divide adds what the values occupy to the indexes that they belong to, in proportion to their lengths.
func (vs values) divide(byID map[int]int64) {
	prefix := (bits.Len(uint(len(vs))) + 6) / 7
	allocated := packed.Allocated(prefix + len(vs))
	for rest := string(vs); rest != ""; {
		before := len(rest)
		section, count := cut(&rest), cut(&rest)
		for range count {
			rest = rest[cut(&rest):]
		}
		byID[section] += int64(allocated * (before - len(rest)) / len(vs))
	}
}

func (x *index) stats(values int64) IndexStats {
	stats := IndexStats{Name: x.function.name, Values: x.postings.len,
		Bytes: values + trieBytes(&x.postings) + x.order.bytes()}
	for p := range x.postings.all {
		stats.Entries += p.len()
		if rows := p.many(); rows != nil {
			stats.Bytes += int64(packed.Allocated(int(unsafe.Sizeof(manyPosting{})))) + trieBytes(rows)
		} else {
			stats.Bytes += int64(packed.Allocated(int(unsafe.Sizeof(*p))))
		}
		if x.function.derived {
			stats.Bytes += int64(packed.Allocated(len(p.value)))
		}
	}
	return stats
}

// bytes is what the chunks occupy. The values in them are those of postings.
func (o *order) bytes() int64 {
	bytes := withPointers(cap(o.chunks) * int(unsafe.Sizeof([]string(nil))))
	for _, chunk := range o.chunks {
		bytes += withPointers(cap(chunk) * int(unsafe.Sizeof("")))
	}
	return int64(bytes)
}

// trieBytes is what the nodes of a trie occupy.
func trieBytes[E any](t *trie[E]) int64 {
	if t.inner != nil {
		return t.inner.bytes()
	}
	if t.leaf != nil {
		return t.leaf.bytes()
	}
	return 0
}

func (n *inner[E]) bytes() int64 {
	bytes := int64(packed.Allocated(int(unsafe.Sizeof(*n))))
	n.distinct(func(child *inner[E], l *leaf[E]) bool {
		if child != nil {
			bytes += child.bytes()
		} else {
			bytes += l.bytes()
		}
		return true
	})
	return bytes
}

func (l *leaf[E]) bytes() int64 {
	size, entries := int(unsafe.Sizeof(*l)), cap(l.entries)*int(unsafe.Sizeof(l.entries[0]))
	if len(l.entries) <= leafMax {
		return int64(packed.Allocated(size + entries)) // see makeLeaf
	}
	return int64(packed.Allocated(size) + withPointers(entries))
}

// withPointers is how many bytes of heap n bytes with pointers occupy: above 512, the allocator adds a
// header.
func withPointers(n int) int {
	if n > 512 {
		n += 8
	}
	return packed.Allocated(n)
}
