package store

import (
	"cmp"
	"slices"
	"sort"
)

// hashed is an entry with its hash.
type hashed[E any] struct {
	hash  uint64
	entry E
}

// sortHashed puts entries in the order of a trie: those that share a node are next to each other.
func sortHashed[E any](entries []hashed[E]) {
	slices.SortFunc(entries, func(a, b hashed[E]) int { return cmp.Compare(a.hash, b.hash) })
}

// buildTrie returns the trie of sorted entries, no two of which match.
func buildTrie[E any](sorted []hashed[E]) trie[E] {
	if len(sorted) == 0 {
		return trie[E]{}
	}
	n, l := build(sorted, 0)
	return trie[E]{inner: n, leaf: l, len: len(sorted)}
}

// build returns the node of sorted entries at a depth.
func build[E any](sorted []hashed[E], depth int) (*inner[E], *leaf[E]) {
	if len(sorted) <= leafMax || depth == maxDepth {
		return nil, newLeaf(sorted)
	}
	n := &inner[E]{}
	for len(sorted) > 0 {
		k := slot(sorted[0].hash, depth)
		end := sort.Search(len(sorted), func(i int) bool { return slot(sorted[i].hash, depth) > k })
		n.inners[k], n.leaves[k] = build(sorted[:end], depth+1)
		sorted = sorted[end:]
	}
	return n, nil
}

func newLeaf[E any](entries []hashed[E]) *leaf[E] {
	l := &leaf[E]{entries: make([]E, len(entries))}
	for i, e := range entries {
		l.set(i, e.hash, e.entry)
	}
	return l
}
