package store

import (
	"sort"
	"unsafe"
)

// innerNode is an inner node with one child for each slot. A leaf can be the child of 2, 4, 8 or 16 slots
// with a common prefix of bits.
type innerNode[E any] struct {
	// leaves has a bit for each slot with a leaf.
	leaves uint16
	// children are *leafNode[E] if the bit is set, otherwise *innerNode[E]. One array makes a node half as
	// large as two would, and every write copies one node of each level.
	children [fanOut]unsafe.Pointer
}

// child returns the child of slot k, either an inner node or a leaf.
func (n *innerNode[E]) child(k int) (*innerNode[E], *leafNode[E]) {
	c := n.children[k&(fanOut-1)]
	if n.leaves>>k&1 == 0 {
		return (*innerNode[E])(c), nil
	}
	return nil, (*leafNode[E])(c)
}

func (n *innerNode[E]) setInner(k int, child *innerNode[E]) {
	n.leaves &^= 1 << k
	n.children[k] = unsafe.Pointer(child)
}

// setLeaf sets the leaf of count slots starting with first.
func (n *innerNode[E]) setLeaf(first, count int, l *leafNode[E]) {
	for k := first; k < first+count; k++ {
		n.leaves |= 1 << k
		n.children[k] = unsafe.Pointer(l)
	}
}

// sharedSlots returns the range of slots with the same leaf as slot k.
func (n *innerNode[E]) sharedSlots(k int) (first, count int) {
	count = 1
	for count < fanOut && n.children[k^count] == n.children[k] {
		count *= 2
	}
	return k &^ (count - 1), count
}

// forEachDistinct calls yield for each distinct child until it returns false.
func (n *innerNode[E]) forEachDistinct(yield func(*innerNode[E], *leafNode[E]) bool) bool {
	for k := 0; k < fanOut; {
		child, l := n.child(k)
		if !yield(child, l) {
			return false
		}
		if k++; l != nil {
			for k < fanOut && n.children[k] == unsafe.Pointer(l) {
				k++
			}
		}
	}
	return true
}

func (n *innerNode[E]) all(yield func(*E) bool) bool {
	return n.forEachDistinct(func(child *innerNode[E], l *leafNode[E]) bool {
		if child != nil {
			return child.all(yield)
		}
		return l.all(yield)
	})
}

// newInner returns an inner node with sorted entries.
func newInner[E any](sorted []hashedEntry[*E], depth int) *innerNode[E] {
	n := &innerNode[E]{}
	n.fill(0, fanOut, sorted, depth)
	return n
}

// fill creates children with sorted entries for count slots starting with first: one leaf if the entries fit.
func (n *innerNode[E]) fill(first, count int, sorted []hashedEntry[*E], depth int) {
	switch {
	case len(sorted) <= maxLeafEntries || count == 1 && depth+1 == maxDepth:
		n.setLeaf(first, count, newLeaf(sorted))
	case count == 1:
		n.setInner(first, newInner(sorted, depth+1))
	default:
		half := first + count/2
		end := sort.Search(len(sorted), func(i int) bool { return childIndex(sorted[i].hash, depth) >= half })
		n.fill(first, count/2, sorted[:end], depth)
		n.fill(half, count/2, sorted[end:], depth)
	}
}

// collapse returns a leaf to replace a node with few entries, or nil. The limit is half a leaf, so that a
// set of alternating size does not split and collapse each time.
func (n *innerNode[E]) collapse() *leafNode[E] {
	if n.leaves != 1<<fanOut-1 {
		return nil
	}
	count := 0
	n.forEachDistinct(func(_ *innerNode[E], l *leafNode[E]) bool {
		count += len(l.entries)
		return count <= maxLeafEntries/2
	})
	if count > maxLeafEntries/2 {
		return nil
	}
	merged := makeLeaf[E](count)
	merged.entries = merged.entries[:0]
	n.forEachDistinct(func(_ *innerNode[E], l *leafNode[E]) bool {
		copy(merged.tags[len(merged.entries):], l.tags[:len(l.entries)])
		merged.entries = append(merged.entries, l.entries...)
		return true
	})
	return merged
}

type hashedEntry[T any] struct {
	hash  uint64
	entry T
}

// buildTrie returns the trie of sorted, distinct entries.
func buildTrie[E any](sorted []hashedEntry[*E]) trie[E] {
	switch {
	case len(sorted) == 0:
		return trie[E]{}
	case len(sorted) <= maxLeafEntries:
		return trie[E]{leaf: newLeaf(sorted), len: len(sorted)}
	default:
		return trie[E]{inner: newInner(sorted, 0), len: len(sorted)}
	}
}
