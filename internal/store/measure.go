package store

import (
	"sync"
	"unsafe"

	"github.com/crdcache/crdcache/internal/packed"
)

// Sample sizes. Tries are in the order of hashes, so their first entries are a random sample.
const (
	sampleLeaves   = 32
	samplePostings = 64
	sampleObjects  = 32
	// measuredBytes is the total size of decoded objects at which sampling ends.
	measuredBytes = 1 << 20
)

// Measure is an estimate of Stats at constant cost. Counts and the sizes of packed objects are exact; the
// sizes of tables, indexes and decoded objects are extrapolated.
type Measure struct {
	Objects, Compressed                 int
	ObjectBytes, TableBytes, IndexBytes int64
	// CompressedBytes is the part of ObjectBytes for compressed objects, PackedBytes the part for packed,
	// uncompressed ones.
	CompressedBytes, PackedBytes int64
	// Indexes are in the order of addition.
	Indexes []IndexMeasure
}

// Bytes returns the total size in bytes.
func (m Measure) Bytes() int64 { return m.ObjectBytes + m.TableBytes + m.IndexBytes }

// IndexMeasure describes an index; see IndexStats.
type IndexMeasure struct {
	Name            string
	Values, Entries int
}

// Measure returns an estimate of the store's current size. It blocks neither writers nor readers.
func (s *Store) Measure() Measure {
	now := s.current.Load()
	m := Measure{
		Objects: now.rows.len, Compressed: now.sizes.compressed,
		ObjectBytes:     now.sizes.packed + s.decoded.bytes(now),
		CompressedBytes: now.sizes.compressedBytes, PackedBytes: now.sizes.uncompressed(),
		Indexes: make([]IndexMeasure, 0, len(now.indexes)),
	}
	nodes := nodeBytes(&now.rows)
	m.TableBytes = nodes + tableRowBytes(now)
	perRow := 0.0
	if now.rows.len > 0 {
		perRow = float64(nodes) / float64(now.rows.len)
	}
	for i := range now.indexes {
		x := &now.indexes[i]
		m.Indexes = append(m.Indexes, IndexMeasure{Name: x.function.name, Values: x.postings.len,
			Entries: x.entryCount})
		m.IndexBytes += x.measure(perRow)
	}
	return m
}

// Decodes returns the hits and misses of Stats.
func (s *Store) Decodes() (hits, misses int64) {
	f, ok := s.form.(*Packed)
	if !ok {
		return 0, 0
	}
	hits, misses = f.Decodes()
	if recent := s.recent.Load(); recent != nil {
		hits += recent.countHits()
	}
	return hits, misses
}

// tableRowBytes estimates the size of all rows from the first ones.
func tableRowBytes(now *Snapshot) int64 {
	var bytes int64
	measured := 0
	for r := range now.rows.all {
		bytes += rowBytes(r)
		if measured++; measured == sampleObjects {
			break
		}
	}
	return extrapolate(bytes, measured, now.rows.len)
}

// extrapolate scales bytes, the size of some of all entries.
func extrapolate(bytes int64, sampled, total int) int64 {
	if sampled == 0 {
		return 0
	}
	return int64(float64(bytes) / float64(sampled) * float64(total))
}

// nodeBytes estimates the size of a trie's nodes. It is exact for small tries.
func nodeBytes[E any](t *trie[E]) int64 {
	if t.inner == nil {
		return trieBytes(t)
	}
	var m nodeMeasurement[E]
	m.node(t.inner)
	return extrapolate(m.bytes, m.entries, t.len)
}

// nodeMeasurement adds up the first leaves of a trie, and the inner nodes that lead only to them.
type nodeMeasurement[E any] struct {
	bytes           int64
	leaves, entries int
}

// node returns false after enough leaves.
func (m *nodeMeasurement[E]) node(n *innerNode[E]) bool {
	completed := n.distinct(func(child *innerNode[E], l *leafNode[E]) bool {
		if child != nil {
			return m.node(child)
		}
		m.bytes += l.bytes()
		m.entries += len(l.entries)
		m.leaves++
		return m.leaves < sampleLeaves
	})
	if completed {
		m.bytes += int64(packed.AllocationSize(int(unsafe.Sizeof(*n))))
	}
	return completed
}

// measure estimates the size of the index from its first postings. Rows in large postings are estimated from
// their number, with the cost of a row in a large trie. Values count as stored once.
func (x *index) measure(perRow float64) int64 {
	var bytes int64
	measured, few := 0, 0
	for p := range x.postings.all {
		bytes += x.postingBytes(p)
		if n := p.len(); n <= leafMax {
			few += n
		}
		if measured++; measured == samplePostings {
			break
		}
	}
	total := nodeBytes(&x.postings) + extrapolate(bytes, measured, x.postings.len) + x.sortedValues.measure()
	many := int64(x.entryCount) - extrapolate(int64(few), measured, x.postings.len)
	return total + int64(float64(max(many, 0))*perRow)
}

// postingBytes returns the size of a posting, without the rows of a large one.
func (x *index) postingBytes(p *posting) int64 {
	bytes := packed.AllocationSize(int(unsafe.Sizeof(*p)))
	if rows := p.rowSet(); rows != nil {
		bytes = packed.AllocationSize(int(unsafe.Sizeof(manyPosting{})))
		if rows.len <= leafMax {
			bytes += int(trieBytes(rows))
		}
	}
	value := len(p.value)
	if !x.function.byNamespace {
		value += 3 // its encoding in the row's values
	}
	return int64(bytes + packed.AllocationSize(value))
}

// measure is bytes, calculated from the numbers of chunks and values.
func (o *sortedValues) measure() int64 {
	return int64(pointerAllocationSize(cap(o.chunks)*int(unsafe.Sizeof([]string(nil))))) +
		int64(o.len)*int64(unsafe.Sizeof(""))
}

// decodedSize caches the average size of decoded objects, the most expensive part of Measure. It is computed
// again after an eighth of the objects may have changed.
type decodedSize struct {
	mu struct {
		sync.Mutex
		mean float64
		// replacedThen is sizes.replaced when mean was computed; measured is set after the first time.
		replacedThen int64
		measured     bool
	}
}

func (d *decodedSize) bytes(now *Snapshot) int64 {
	if now.sizes.decoded == 0 {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if changed := now.sizes.replaced - d.mu.replacedThen; !d.mu.measured || changed < 0 ||
		changed > int64(now.sizes.decoded/8) {
		d.mu.mean, d.mu.replacedThen, d.mu.measured = meanDecodedSize(now), now.sizes.replaced, true
	}
	return int64(d.mu.mean * float64(now.sizes.decoded))
}

func meanDecodedSize(now *Snapshot) float64 {
	var walk sizeWalk
	count, visited := 0, 0
	for r := range now.rows.all {
		if r.object.Load() == nil {
			walk.object(r.unpacked)
			count++
		}
		visited++ // a store with both kinds may have few decoded objects
		if count == sampleObjects || walk.bytes > measuredBytes || visited == 32*sampleObjects {
			break
		}
	}
	return float64(walk.bytes) / float64(max(count, 1))
}
