package store

import (
	"cmp"
	"math/bits"
	"slices"
)

// minBucketSort is the number of entries at which bucket sort becomes faster.
const minBucketSort = 64

// bucketSort sorts entries by hash, the order of a trie. Hashes are evenly distributed, so that with as many
// buckets as entries each bucket has about one. Its memory is reused.
type bucketSort[T any] struct {
	ends    []int32
	scratch []hashedEntry[T]
}

func sortHashed[T any](entries []hashedEntry[T]) {
	var b bucketSort[T]
	b.sort(entries)
}

func (b *bucketSort[T]) sort(entries []hashedEntry[T]) {
	if len(entries) < minBucketSort {
		sortSmall(entries)
		return
	}
	b.scratch = append(b.scratch[:0], entries...)
	b.sortInto(entries, b.scratch)
}

// sortInto sorts entries by hash into sorted, which has the same length.
func (b *bucketSort[T]) sortInto(sorted, entries []hashedEntry[T]) {
	if len(entries) < minBucketSort {
		copy(sorted, entries)
		sortSmall(sorted)
		return
	}
	shift := 64 - bits.Len(uint(len(entries)-1))
	ends := b.zeroedEnds(1 << (64 - shift))
	for i := range entries {
		ends[entries[i].hash>>shift]++
	}
	total := int32(0)
	for i, count := range ends {
		ends[i] = total
		total += count
	}
	for _, e := range entries {
		i := e.hash >> shift
		sorted[ends[i]] = e
		ends[i]++
	}
	from := int32(0)
	for _, end := range ends {
		if end-from > 1 {
			sortSmall(sorted[from:end])
		}
		from = end
	}
}

func (b *bucketSort[T]) zeroedEnds(count int) []int32 {
	if cap(b.ends) < count {
		b.ends = make([]int32, count)
	}
	b.ends = b.ends[:count]
	clear(b.ends)
	return b.ends
}

// sortSmall sorts a bucket, which is short unless all its hashes are equal.
func sortSmall[T any](entries []hashedEntry[T]) {
	if len(entries) > 12 {
		slices.SortFunc(entries, func(a, b hashedEntry[T]) int { return cmp.Compare(a.hash, b.hash) })
		return
	}
	for i := 1; i < len(entries); i++ {
		for k := i; k > 0 && entries[k].hash < entries[k-1].hash; k-- {
			entries[k], entries[k-1] = entries[k-1], entries[k]
		}
	}
}
