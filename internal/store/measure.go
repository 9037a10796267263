package store

import (
	"sync"
	"unsafe"

	"github.com/crdcache/crdcache/internal/packed"
)

// How much is looked at to tell how large the whole is. Tries are in the order of hashes, so that their first
// entries are a random choice.
const (
	measuredLeaves   = 32
	measuredPostings = 64
	measuredObjects  = 32
	// measuredBytes is how many bytes of decoded objects are enough, however few objects have them.
	measuredBytes = 1 << 20
)

// Measure is what Stats tells, at a cost that does not grow with the store. Counts and the bytes of packed
// objects are exact; the bytes of tables, indexes and decoded objects are extrapolated.
type Measure struct {
	Objects, Compressed                 int
	ObjectBytes, TableBytes, IndexBytes int64
	// CompressedBytes are those of ObjectBytes that are compressed objects, PackedBytes those that are packed
	// ones and not compressed.
	CompressedBytes, PackedBytes int64
	// Indexes are in the order in which they were added.
	Indexes []IndexMeasure
}

// Bytes is the sum of all parts.
func (m Measure) Bytes() int64 { return m.ObjectBytes + m.TableBytes + m.IndexBytes }

// IndexMeasure is how much an index has: see IndexStats.
type IndexMeasure struct {
	Name            string
	Values, Entries int
}

// Measure tells what the store occupies now. It keeps neither writers nor readers waiting.
func (s *Store) Measure() Measure {
	now := s.current.Load()
	m := Measure{
		Objects: now.rows.len, Compressed: now.sizes.compressed,
		ObjectBytes:     now.sizes.packed + s.decoded.bytes(now),
		CompressedBytes: now.sizes.compressedBytes, PackedBytes: now.sizes.plain(),
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
			Entries: x.entries})
		m.IndexBytes += x.measure(perRow)
	}
	return m
}

// Decodes counts the reads of packed objects: see Stats.
func (s *Store) Decodes() (hits, misses int64) {
	if f, ok := s.form.(*Packed); ok {
		return f.Decodes()
	}
	return 0, 0
}

// tableRowBytes is what the rows themselves occupy, by rowBytes of the first ones.
func tableRowBytes(now *Snapshot) int64 {
	var bytes int64
	measured := 0
	for r := range now.rows.all {
		bytes += rowBytes(r)
		if measured++; measured == measuredObjects {
			break
		}
	}
	return extrapolated(bytes, measured, now.rows.len)
}

// extrapolated is what all come to when some of them come to bytes.
func extrapolated(bytes int64, some, all int) int64 {
	if some == 0 {
		return 0
	}
	return int64(float64(bytes) / float64(some) * float64(all))
}

// nodeBytes is what the nodes of a trie occupy: exactly if it is small.
func nodeBytes[E any](t *trie[E]) int64 {
	if t.inner == nil {
		return trieBytes(t)
	}
	var m measuring[E]
	m.node(t.inner)
	return extrapolated(m.bytes, m.entries, t.len)
}

// measuring adds up the first leaves of a trie, and the inner nodes that lead to no others.
type measuring[E any] struct {
	bytes           int64
	leaves, entries int
}

// node returns false when it has seen enough.
func (m *measuring[E]) node(n *inner[E]) bool {
	all := n.distinct(func(child *inner[E], l *leaf[E]) bool {
		if child != nil {
			return m.node(child)
		}
		m.bytes += l.bytes()
		m.entries += len(l.entries)
		m.leaves++
		return m.leaves < measuredLeaves
	})
	if all {
		m.bytes += int64(packed.Allocated(int(unsafe.Sizeof(*n))))
	}
	return all
}

// measure is what the index occupies: what each posting does, by the first ones, with the rows of those that
// have few; the rows that others have are known by their number, and cost what rows do in a large trie.
// Values are taken to be in memory once.
func (x *index) measure(perRow float64) int64 {
	var bytes int64
	measured, few := 0, 0
	for p := range x.postings.all {
		bytes += x.postingBytes(p)
		if n := p.len(); n <= leafMax {
			few += n
		}
		if measured++; measured == measuredPostings {
			break
		}
	}
	total := nodeBytes(&x.postings) + extrapolated(bytes, measured, x.postings.len) + x.order.measure()
	many := int64(x.entries) - extrapolated(int64(few), measured, x.postings.len)
	return total + int64(float64(max(many, 0))*perRow)
}

// postingBytes is what a posting occupies without the rows of one that has many.
func (x *index) postingBytes(p *posting) int64 {
	bytes := packed.Allocated(int(unsafe.Sizeof(*p)))
	if rows := p.many(); rows != nil {
		bytes = packed.Allocated(int(unsafe.Sizeof(manyPosting{})))
		if rows.len <= leafMax {
			bytes += int(trieBytes(rows))
		}
	}
	value := len(p.value)
	if !x.function.derived {
		value += 3 // as it is among the values of a row
	}
	return int64(bytes + packed.Allocated(value))
}

// measure is what the chunks occupy, as bytes tells, by their numbers.
func (o *order) measure() int64 {
	return int64(withPointers(cap(o.chunks)*int(unsafe.Sizeof([]string(nil))))) +
		int64(o.len)*int64(unsafe.Sizeof(""))
}

// decodedSize knows how large decoded objects are on average. To find out takes longer than all else that
// Measure does, and is not done again before an eighth of the objects may have changed.
type decodedSize struct {
	mu struct {
		sync.Mutex
		mean float64
		// at is sizes.replaced when mean was found; measured that there has been a first time.
		at       int64
		measured bool
	}
}

// bytes is what the decoded objects of a snapshot occupy.
func (d *decodedSize) bytes(now *Snapshot) int64 {
	if now.sizes.decoded == 0 {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if changed := now.sizes.replaced - d.mu.at; !d.mu.measured || changed < 0 ||
		changed > int64(now.sizes.decoded/8) {
		d.mu.mean, d.mu.at, d.mu.measured = meanOfDecoded(now), now.sizes.replaced, true
	}
	return int64(d.mu.mean * float64(now.sizes.decoded))
}

func meanOfDecoded(now *Snapshot) float64 {
	var walk walk
	count, seen := 0, 0
	for r := range now.rows.all {
		if r.object.Load() == nil {
			walk.object(r.other)
			count++
		}
		seen++ // a store that has both kinds may have few of this one
		if count == measuredObjects || walk.bytes > measuredBytes || seen == 32*measuredObjects {
			break
		}
	}
	return float64(walk.bytes) / float64(max(count, 1))
}
