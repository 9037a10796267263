package store

import (
	"math/bits"
	"unsafe"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/packed"
)

// Sample sizes. Tries are in the order of hashes, so their first entries are a random sample.
const (
	sampleLeaves   = 64
	samplePostings = 128
	sampleObjects  = 64
)

// sampleRows estimates from the first rows the size of all rows, and the size of their index values by
// index id. Rows with equal index values share them. Their number is therefore estimated as the number of
// values of the largest index.
func (s *Snapshot) sampleRows() (tableBytes int64, valueBytes map[int]int64) {
	valueBytes = map[int]int64{}
	measured, distinct := 0, 0
	for r := range s.rows.all {
		tableBytes += rowBytes(r)
		r.values().addSizesTo(valueBytes)
		if measured++; measured == sampleObjects {
			break
		}
	}
	for i := range s.indexes {
		if x := &s.indexes[i]; !x.function.byNamespace {
			distinct = max(distinct, x.postings.len)
		}
	}
	for id, bytes := range valueBytes {
		valueBytes[id] = extrapolate(bytes, measured, min(distinct, s.rows.len))
	}
	return extrapolate(tableBytes, measured, s.rows.len), valueBytes
}

// addSizesTo adds the size of the values to their indexes, in proportion to their lengths.
func (vs indexValues) addSizesTo(byID map[int]int64) {
	prefix := (bits.Len(uint(len(vs))) + 6) / 7
	allocated := packed.AllocationSize(prefix + len(vs))
	for id, section := range vs.sections {
		byID[id] += int64(allocated * len(section) / len(vs))
	}
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
	m.measure(t.inner)
	return extrapolate(m.bytes, m.entries, t.len)
}

// nodeMeasurement adds up the first leaves of a trie, and the inner nodes that lead only to them.
type nodeMeasurement[E any] struct {
	bytes           int64
	leaves, entries int
}

// measure returns false after enough leaves.
func (m *nodeMeasurement[E]) measure(n *innerNode[E]) bool {
	completed := n.forEachDistinct(func(child *innerNode[E], l *leafNode[E]) bool {
		if child != nil {
			return m.measure(child)
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

// stats describes the index. It estimates the size from the first postings. That of rows in large postings is
// their number times bytesPerRow, the cost in a large trie. valueBytes is the size of the values.
func (x *index) stats(bytesPerRow float64, valueBytes int64) status.IndexStats {
	var bytes int64
	measured, smallPostingRows := 0, 0
	for p := range x.postings.all {
		bytes += x.postingBytes(p)
		if n := p.len(); n <= maxLeafEntries {
			smallPostingRows += n
		}
		if measured++; measured == samplePostings {
			break
		}
	}
	allSmallPostingRows := extrapolate(int64(smallPostingRows), measured, x.postings.len)
	largePostingRows := max(int64(x.entryCount)-allSmallPostingRows, 0)
	return status.IndexStats{Name: x.function.name, Values: x.postings.len, Entries: x.entryCount,
		Bytes: valueBytes + nodeBytes(&x.postings) + extrapolate(bytes, measured, x.postings.len) +
			x.sortedValues.bytes() + int64(float64(largePostingRows)*bytesPerRow)}
}

// postingBytes returns the size of a posting, without the rows of a large one.
func (x *index) postingBytes(p *posting) int64 {
	bytes := packed.AllocationSize(int(unsafe.Sizeof(*p)))
	if rows := p.rowSet(); rows != nil {
		bytes = packed.AllocationSize(int(unsafe.Sizeof(manyPosting{})))
		if rows.len <= maxLeafEntries {
			bytes += int(trieBytes(rows))
		}
	}
	if x.function.byNamespace { // other indexes share the values of rows
		bytes += packed.AllocationSize(len(p.value))
	}
	return int64(bytes)
}

// bytes returns the size of the chunks, which share the values of the postings.
func (o *sortedValues) bytes() int64 {
	return int64(packed.PointerAllocationSize(cap(o.chunks)*int(unsafe.Sizeof([]string(nil))))) +
		int64(o.len)*int64(unsafe.Sizeof(""))
}
