package store

import (
	"slices"
	"strings"
)

// order keeps the values of a sorted index in their order. It is immutable like a trie: changing it makes
// another order, which shares all but one chunk with the first. The zero value is empty.
//
// Values are in chunks, and the chunks in a slice, so that a change copies one chunk and the slice of chunks:
// some 8 KB for 100,000 values. It changes only when a value comes or goes, not with each object.
type order struct {
	// chunks are not empty, and each is sorted. What is in one is less than what is in the next.
	chunks [][]string
	len    int
}

// chunkMax is where a chunk is split in two.
const chunkMax = 256

// buildOrder returns the order of sorted values that are all different.
func buildOrder(values []string) order {
	o := order{len: len(values)}
	for part := range slices.Chunk(values, chunkMax/2) {
		o.chunks = append(o.chunks, slices.Clip(part))
	}
	return o
}

// chunk returns the last chunk that begins at or before the value, or the first.
func (o *order) chunk(value string) int {
	at, found := slices.BinarySearchFunc(o.chunks, value,
		func(c []string, v string) int { return strings.Compare(c[0], v) })
	if !found && at > 0 {
		at--
	}
	return at
}

// with returns the order with a value, which it must not have.
func (o *order) with(value string) order {
	if len(o.chunks) == 0 {
		return order{chunks: [][]string{{value}}, len: 1}
	}
	k := o.chunk(value)
	at, _ := slices.BinarySearch(o.chunks[k], value)
	chunk := make([]string, 0, len(o.chunks[k])+1)
	chunk = append(append(append(chunk, o.chunks[k][:at]...), value), o.chunks[k][at:]...)
	if len(chunk) < chunkMax {
		return order{replaced(o.chunks, k, chunk), o.len + 1}
	}
	half := len(chunk) / 2
	return order{replaced(o.chunks, k, slices.Clone(chunk[:half]), slices.Clone(chunk[half:])), o.len + 1}
}

// without returns the order without a value, which it must have.
func (o *order) without(value string) order {
	k := o.chunk(value)
	at, _ := slices.BinarySearch(o.chunks[k], value)
	if len(o.chunks[k]) == 1 {
		return order{replaced(o.chunks, k), o.len - 1}
	}
	chunk := make([]string, 0, len(o.chunks[k])-1)
	chunk = append(append(chunk, o.chunks[k][:at]...), o.chunks[k][at+1:]...)
	// or chunks would stay small for ever
	if k+1 < len(o.chunks) && len(chunk)+len(o.chunks[k+1]) < chunkMax/2 {
		merged := slices.Concat(chunk, o.chunks[k+1])
		next := replaced(o.chunks, k+1)
		next[k] = merged
		return order{next, o.len - 1}
	}
	return order{replaced(o.chunks, k, chunk), o.len - 1}
}

// replaced returns a copy of the chunks with others in place of number k.
func replaced(chunks [][]string, k int, by ...[]string) [][]string {
	next := make([][]string, 0, len(chunks)-1+len(by))
	return append(append(append(next, chunks[:k]...), by...), chunks[k+1:]...)
}

// count counts the values from one on and before another (empty: no bound), by whole chunks.
func (o *order) count(from, to string) int {
	high := o.len
	if to != "" {
		high = o.before(to)
	}
	return max(high-o.before(from), 0)
}

// before counts the values before one.
func (o *order) before(value string) int {
	if len(o.chunks) == 0 {
		return 0
	}
	k := o.chunk(value)
	at, _ := slices.BinarySearch(o.chunks[k], value)
	for _, c := range o.chunks[:k] {
		at += len(c)
	}
	return at
}

// ascend calls yield for each value from one on and before another (empty: no bound), until it returns false.
func (o *order) ascend(from, to string, yield func(string) bool) {
	if len(o.chunks) == 0 {
		return
	}
	k := o.chunk(from)
	at, _ := slices.BinarySearch(o.chunks[k], from)
	for ; k < len(o.chunks); k++ {
		for _, value := range o.chunks[k][at:] {
			if to != "" && value >= to || !yield(value) {
				return
			}
		}
		at = 0
	}
}

// descend is ascend the other way round.
func (o *order) descend(from, to string, yield func(string) bool) {
	if len(o.chunks) == 0 {
		return
	}
	k := len(o.chunks) - 1
	at := len(o.chunks[k])
	if to != "" {
		k = o.chunk(to)
		at, _ = slices.BinarySearch(o.chunks[k], to)
	}
	for ; k >= 0; k-- {
		for i := at - 1; i >= 0; i-- {
			if value := o.chunks[k][i]; value < from || !yield(value) {
				return
			}
		}
		if k > 0 {
			at = len(o.chunks[k-1])
		}
	}
}
