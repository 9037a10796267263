package store

import (
	"cmp"
	"slices"
	"sort"
)

// hashed is an entry with its hash.
type hashed[T any] struct {
	hash  uint64
	entry T
}

// sortHashed puts entries in the order of a trie: those that share a node are next to each other.
func sortHashed[T any](entries []hashed[T]) {
	slices.SortFunc(entries, func(a, b hashed[T]) int { return cmp.Compare(a.hash, b.hash) })
}

// firstFrom returns the place of the first of sorted entries for whose hash from holds, as it does for all after it.
func firstFrom[T any](sorted []hashed[T], from func(hash uint64) bool) int {
	return sort.Search(len(sorted), func(i int) bool { return from(sorted[i].hash) })
}

// buildTrie returns the trie of sorted entries, no two of which match.
func buildTrie[E any](sorted []hashed[*E]) trie[E] {
	switch {
	case len(sorted) == 0:
		return trie[E]{}
	case len(sorted) <= leafMax:
		return trie[E]{leaf: newLeaf(sorted), len: len(sorted)}
	default:
		return trie[E]{inner: newInner(sorted, 0), len: len(sorted)}
	}
}
