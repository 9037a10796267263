package store

import "bytes"

// trie is an immutable set of entries, found by a 64-bit hash: changing it makes another trie, which shares all
// but one path with the first. Whoever has one may read it for ever, without a lock. The zero value is empty.
//
// Each level of inner nodes takes three bits of the hash, from the top down, until a leaf holds what is left.
// Entries that are new to each other in most of their hash's bits do not exist in practice, but do no harm.
type trie[E any] struct {
	// root is one of the two, or neither.
	inner *inner[E]
	leaf  *leaf[E]
	len   int
}

const (
	fanBits = 3
	fan     = 1 << fanBits
	// leafMax is the number of entries from which on a leaf is split. With the tags it fills a size class.
	leafMax = 24
	// maxDepth is where the hash's bits are used up, but for the tag: leaves there are never split.
	maxDepth = (64 - 8) / fanBits
)

// inner is an inner node: of each child one of the two is set, or neither.
type inner[E any] struct {
	inners [fan]*inner[E]
	leaves [fan]*leaf[E]
}

// leaf holds entries in no order. tags are the lowest bits of the hashes of the first entries, so that most of
// those that do not match need not be looked at.
type leaf[E any] struct {
	tags    [leafMax]byte
	entries []E
}

// slot is the child that a hash leads to at a depth.
func slot(hash uint64, depth int) int { return int(hash>>(64-fanBits*(depth+1))) & (fan - 1) }

func tag(hash uint64) byte { return byte(hash) }

// find returns the entry of that hash that matches.
func (t *trie[E]) find(hash uint64, match func(E) bool) (found E, ok bool) {
	l := t.leaf
	if n := t.inner; n != nil {
		for path := hash; ; path <<= fanBits {
			k := path >> (64 - fanBits)
			next := n.inners[k]
			if next == nil {
				l = n.leaves[k]
				break
			}
			n = next
		}
	}
	if l == nil {
		return found, false
	}
	if at := l.find(hash, match); at >= 0 {
		return l.entries[at], true
	}
	return found, false
}

// find returns the place of an entry, or -1.
func (l *leaf[E]) find(hash uint64, match func(E) bool) int {
	tagged := l.tags[:min(len(l.entries), leafMax)]
	for at := 0; at < len(tagged); at++ {
		next := bytes.IndexByte(tagged[at:], tag(hash))
		if next < 0 {
			break
		}
		at += next
		if match(l.entries[at]) {
			return at
		}
	}
	for at := leafMax; at < len(l.entries); at++ {
		if match(l.entries[at]) {
			return at
		}
	}
	return -1
}

// all calls yield for each entry, in an order that does not change, until it returns false.
func (t *trie[E]) all(yield func(E) bool) {
	if t.inner != nil {
		t.inner.all(yield)
	} else {
		t.leaf.all(yield)
	}
}

func (n *inner[E]) all(yield func(E) bool) bool {
	for k := range fan {
		if next := n.inners[k]; next != nil {
			if !next.all(yield) {
				return false
			}
		} else if !n.leaves[k].all(yield) {
			return false
		}
	}
	return true
}

func (l *leaf[E]) all(yield func(E) bool) bool {
	if l == nil {
		return true
	}
	for _, e := range l.entries {
		if !yield(e) {
			return false
		}
	}
	return true
}

// with returns a trie that holds e, in place of the entry that matches if there is one. hash gives the hash of
// any entry.
func (t *trie[E]) with(h uint64, e E, match func(E) bool, hash func(E) uint64) trie[E] {
	next := trie[E]{len: t.len}
	var grown bool
	next.inner, next.leaf, grown = put(t.inner, t.leaf, h, 0, e, match, hash)
	if grown {
		next.len++
	}
	return next
}

// put is with for a node, which may be nil.
func put[E any](n *inner[E], l *leaf[E], h uint64, depth int, e E, match func(E) bool, hash func(E) uint64) (*inner[E], *leaf[E], bool) {
	if n != nil {
		next := *n
		var grown bool
		k := slot(h, depth)
		next.inners[k], next.leaves[k], grown = put(n.inners[k], n.leaves[k], h, depth+1, e, match, hash)
		return &next, nil, grown
	}
	if l == nil {
		return nil, newLeaf([]hashed[E]{{h, e}}), true
	}
	if at := l.find(h, match); at >= 0 {
		next := &leaf[E]{tags: l.tags, entries: append([]E(nil), l.entries...)}
		next.entries[at] = e
		return nil, next, false
	}
	if len(l.entries) < leafMax || depth == maxDepth {
		next := &leaf[E]{tags: l.tags, entries: make([]E, len(l.entries)+1)}
		copy(next.entries, l.entries)
		next.set(len(l.entries), h, e)
		return nil, next, true
	}
	entries := make([]hashed[E], 0, leafMax+1)
	for _, have := range l.entries {
		entries = append(entries, hashed[E]{hash(have), have})
	}
	entries = append(entries, hashed[E]{h, e})
	sortHashed(entries)
	split, whole := build(entries, depth)
	return split, whole, true
}

func (l *leaf[E]) set(at int, h uint64, e E) {
	l.entries[at] = e
	if at < leafMax {
		l.tags[at] = tag(h)
	}
}

// without returns a trie that lacks the entry that matches.
func (t *trie[E]) without(h uint64, match func(E) bool, hash func(E) uint64) trie[E] {
	n, l, found := remove(t.inner, t.leaf, h, 0, match, hash)
	if !found {
		return *t
	}
	return trie[E]{inner: n, leaf: l, len: t.len - 1}
}

// remove is without for a node, which may be nil.
func remove[E any](n *inner[E], l *leaf[E], h uint64, depth int, match func(E) bool, hash func(E) uint64) (*inner[E], *leaf[E], bool) {
	if n != nil {
		k := slot(h, depth)
		child, last, found := remove(n.inners[k], n.leaves[k], h, depth+1, match, hash)
		if !found {
			return n, nil, false
		}
		next := *n
		next.inners[k], next.leaves[k] = child, last
		if whole, ok := next.collapsed(); ok {
			return nil, whole, true
		}
		return &next, nil, true
	}
	if l == nil {
		return nil, nil, false
	}
	at := l.find(h, match)
	if at < 0 {
		return nil, l, false
	}
	last := len(l.entries) - 1
	if last == 0 {
		return nil, nil, true
	}
	next := &leaf[E]{tags: l.tags, entries: make([]E, last)}
	copy(next.entries, l.entries)
	if at < last { // the last entry moves into the gap
		moved := l.entries[last]
		next.set(at, hash(moved), moved)
	}
	return nil, next, true
}

// collapsed returns the leaf that can stand for a node with few entries. Half a leaf is few, so that a set
// that grows and shrinks by one does not pay each time.
func (n *inner[E]) collapsed() (*leaf[E], bool) {
	count := 0
	for k := range fan {
		if n.inners[k] != nil {
			return nil, false
		}
		if l := n.leaves[k]; l != nil {
			count += len(l.entries)
		}
	}
	if count > leafMax/2 {
		return nil, false
	}
	whole := &leaf[E]{entries: make([]E, 0, count)}
	for _, l := range n.leaves {
		if l != nil {
			copy(whole.tags[len(whole.entries):], l.tags[:len(l.entries)])
			whole.entries = append(whole.entries, l.entries...)
		}
	}
	return whole, true
}
