package store

import (
	"cmp"
	"math/bits"
	"slices"
)

// bucketsFrom is the number of entries at which bucket sort becomes faster.
const bucketsFrom = 64

// buckets sorts entries by hash, the order of a trie. Hashes are evenly distributed, so that with as many
// buckets as entries each bucket has about one. Its memory is reused.
type buckets[T any] struct {
	ends    []int32
	scratch []hashed[T]
}

func sortHashed[T any](entries []hashed[T]) {
	var b buckets[T]
	b.sort(entries)
}

func (b *buckets[T]) sort(entries []hashed[T]) {
	if len(entries) < bucketsFrom {
		sortSmall(entries)
		return
	}
	b.scratch = append(b.scratch[:0], entries...)
	b.sortInto(entries, b.scratch)
}

// sortInto sorts entries by hash into to, which has the same length.
func (b *buckets[T]) sortInto(to, entries []hashed[T]) {
	if len(entries) < bucketsFrom {
		copy(to, entries)
		sortSmall(to)
		return
	}
	shift := 64 - bits.Len(uint(len(entries)-1))
	ends := b.emptyEnds(1 << (64 - shift))
	for i := range entries {
		ends[entries[i].hash>>shift]++
	}
	sum := int32(0)
	for i, count := range ends {
		ends[i] = sum
		sum += count
	}
	for _, e := range entries {
		i := e.hash >> shift
		to[ends[i]] = e
		ends[i]++
	}
	from := int32(0)
	for _, end := range ends {
		if end-from > 1 {
			sortSmall(to[from:end])
		}
		from = end
	}
}

// emptyEnds returns count zeros.
func (b *buckets[T]) emptyEnds(count int) []int32 {
	if cap(b.ends) < count {
		b.ends = make([]int32, count)
	}
	b.ends = b.ends[:count]
	clear(b.ends)
	return b.ends
}

// sortSmall sorts a bucket, which is short unless all its hashes are equal.
func sortSmall[T any](entries []hashed[T]) {
	if len(entries) > 12 {
		slices.SortFunc(entries, func(a, b hashed[T]) int { return cmp.Compare(a.hash, b.hash) })
		return
	}
	for i := 1; i < len(entries); i++ {
		for k := i; k > 0 && entries[k].hash < entries[k-1].hash; k-- {
			entries[k], entries[k-1] = entries[k-1], entries[k]
		}
	}
}
