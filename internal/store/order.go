package store

import (
	"slices"
	"strings"
)

// sortedValues is an immutable sorted set of the values of a sorted index. A change returns a new set that
// shares all but one chunk with the old set. The zero value is empty.
//
// A change copies one chunk and the slice of chunks, some 8 KB for 100,000 values. The set changes only when
// a value is added or removed, not for each object.
type sortedValues struct {
	// chunks are not empty and sorted. All values of a chunk are less than the values of the next.
	chunks [][]string
	len    int
}

// maxChunkLength is the length at which a chunk is split in two.
const maxChunkLength = 256

// buildSortedValues returns the set of sorted, distinct values.
func buildSortedValues(values []string) sortedValues {
	o := sortedValues{len: len(values)}
	for part := range slices.Chunk(values, maxChunkLength/2) {
		o.chunks = append(o.chunks, slices.Clip(part))
	}
	return o
}

// chunkIndex returns the index of the last chunk that begins at or before value, or 0.
func (o *sortedValues) chunkIndex(value string) int {
	position, found := slices.BinarySearchFunc(o.chunks, value,
		func(c []string, v string) int { return strings.Compare(c[0], v) })
	if !found && position > 0 {
		position--
	}
	return position
}

// with returns the set with value added. The set must not contain it.
func (o *sortedValues) with(value string) sortedValues {
	if len(o.chunks) == 0 {
		return sortedValues{chunks: [][]string{{value}}, len: 1}
	}
	k := o.chunkIndex(value)
	position, _ := slices.BinarySearch(o.chunks[k], value)
	chunk := make([]string, 0, len(o.chunks[k])+1)
	chunk = append(append(append(chunk, o.chunks[k][:position]...), value), o.chunks[k][position:]...)
	if len(chunk) < maxChunkLength {
		return sortedValues{spliceChunks(o.chunks, k, chunk), o.len + 1}
	}
	half := len(chunk) / 2
	return sortedValues{spliceChunks(o.chunks, k, slices.Clone(chunk[:half]), slices.Clone(chunk[half:])),
		o.len + 1}
}

// without returns the set without value. The set must contain it.
func (o *sortedValues) without(value string) sortedValues {
	k := o.chunkIndex(value)
	position, _ := slices.BinarySearch(o.chunks[k], value)
	if len(o.chunks[k]) == 1 {
		return sortedValues{spliceChunks(o.chunks, k), o.len - 1}
	}
	chunk := make([]string, 0, len(o.chunks[k])-1)
	chunk = append(append(chunk, o.chunks[k][:position]...), o.chunks[k][position+1:]...)
	// Merge small chunks.
	if k+1 < len(o.chunks) && len(chunk)+len(o.chunks[k+1]) < maxChunkLength/2 {
		merged := slices.Concat(chunk, o.chunks[k+1])
		next := spliceChunks(o.chunks, k+1)
		next[k] = merged
		return sortedValues{next, o.len - 1}
	}
	return sortedValues{spliceChunks(o.chunks, k, chunk), o.len - 1}
}

// spliceChunks returns a copy of the chunks with chunk k replaced.
func spliceChunks(chunks [][]string, k int, replacement ...[]string) [][]string {
	next := make([][]string, 0, len(chunks)-1+len(replacement))
	return append(append(append(next, chunks[:k]...), replacement...), chunks[k+1:]...)
}

// count returns the number of values v with from <= v < to. An empty to means no bound.
func (o *sortedValues) count(from, to string) int {
	high := o.len
	if to != "" {
		high = o.countBefore(to)
	}
	return max(high-o.countBefore(from), 0)
}

// countBefore returns the number of values less than value.
func (o *sortedValues) countBefore(value string) int {
	if len(o.chunks) == 0 {
		return 0
	}
	k := o.chunkIndex(value)
	position, _ := slices.BinarySearch(o.chunks[k], value)
	for _, c := range o.chunks[:k] {
		position += len(c)
	}
	return position
}

// ascend calls yield for each value v with from <= v < to, until it returns false. An empty to is no bound.
func (o *sortedValues) ascend(from, to string, yield func(string) bool) {
	if len(o.chunks) == 0 {
		return
	}
	k := o.chunkIndex(from)
	position, _ := slices.BinarySearch(o.chunks[k], from)
	for ; k < len(o.chunks); k++ {
		for _, value := range o.chunks[k][position:] {
			if to != "" && value >= to || !yield(value) {
				return
			}
		}
		position = 0
	}
}

// descend is ascend in descending order.
func (o *sortedValues) descend(from, to string, yield func(string) bool) {
	if len(o.chunks) == 0 {
		return
	}
	k := len(o.chunks) - 1
	position := len(o.chunks[k])
	if to != "" {
		k = o.chunkIndex(to)
		position, _ = slices.BinarySearch(o.chunks[k], to)
	}
	for ; k >= 0; k-- {
		for i := position - 1; i >= 0; i-- {
			if value := o.chunks[k][i]; value < from || !yield(value) {
				return
			}
		}
		if k > 0 {
			position = len(o.chunks[k-1])
		}
	}
}
