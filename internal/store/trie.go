package store

import (
	"hash/maphash"
	"unsafe"
)

// trie is an immutable set of entries with different keys. A change returns a new trie that shares all but
// one path with the old one. Readers need no lock. The zero value is empty. E is a struct whose first field
// is the key, a string, or an identity row.
//
// Each level of inner nodes uses four bits of the hash, starting with the highest. Adjacent slots of an inner
// node share a leaf while their entries fit in one, so leaves are two thirds full on average for any number
// of entries. Entries with nearly equal hashes do not occur in practice, but work.
type trie[E any] struct {
	// At most one of inner and leaf is set: the root.
	inner *innerNode[E]
	leaf  *leafNode[E]
	len   int
}

const (
	fanBits = 4
	fanOut  = 1 << fanBits
	// maxDepth is the depth at which all bits except the tag are used; leaves there are never split.
	maxDepth = (64 - tagBits) / fanBits
)

// keyOf returns the key of an entry. It is a function, not a method of a constraint, so that it is inlined.
func keyOf[E any](e *E) string {
	if isIdentity(unsafe.Pointer(e)) {
		return identityKey(unsafe.Pointer(e))
	}
	return *(*string)(unsafe.Pointer(e))
}

// seed is random, so that clients cannot choose keys with colliding hashes.
var seed = maphash.MakeSeed()

// hashMask are the bits of the hashes in use: all, except in tests of collisions.
var hashMask = ^uint64(0)

func hashOf(key string) uint64 { return maphash.String(seed, key) & hashMask }

// hashEntries returns the entries for buildTrie.
func hashEntries[E any](entries ...*E) []hashedEntry[*E] {
	list := make([]hashedEntry[*E], len(entries))
	for i, e := range entries {
		list[i] = hashedEntry[*E]{hashOf(keyOf(e)), e}
	}
	sortHashed(list)
	return list
}

// childIndex returns the child that a hash selects at a depth.
func childIndex(hash uint64, depth int) int { return int(hash>>(64-fanBits*(depth+1))) & (fanOut - 1) }

// leafOf returns the leaf for entries with that hash, or nil.
func (t *trie[E]) leafOf(hash uint64) *leafNode[E] {
	n := t.inner
	if n == nil {
		return t.leaf
	}
	for {
		next, l := n.child(int(hash >> (64 - fanBits)))
		if next == nil {
			return l
		}
		n, hash = next, hash<<fanBits
	}
}

// find returns the entry with a key, or nil.
func (t *trie[E]) find(key string) *E { return t.findHashed(hashOf(key), key) }

// findHashed is find for a known hash.
func (t *trie[E]) findHashed(hash uint64, key string) *E {
	if l := t.leafOf(hash); l != nil {
		if at := l.find(hash, key); at >= 0 {
			return l.entries[at]
		}
	}
	return nil
}

// leafFrom returns the leaf for entries with that hash, and the first hash after the leaf, which is zero
// after the last leaf. Iterating with next, also in a later version, visits all entries in both.
func (t *trie[E]) leafFrom(hash uint64) (l *leafNode[E], next uint64) {
	n := t.inner
	if n == nil {
		return t.leaf, 0
	}
	for depth := 0; ; depth++ {
		k := childIndex(hash, depth)
		child, l := n.child(k)
		if child == nil {
			first, count := n.sharedSlots(k)
			shift := 64 - fanBits*(depth+1)
			return l, hash&^(1<<(shift+fanBits)-1) + uint64(first+count)<<shift
		}
		n = child
	}
}

// all calls yield for each entry until it returns false, in the same order each time.
func (t *trie[E]) all(yield func(*E) bool) {
	if t.inner != nil {
		t.inner.all(yield)
	} else if t.leaf != nil {
		t.leaf.all(yield)
	}
}

// with returns a trie with e added, or replacing the entry with the same key.
func (t *trie[E]) with(e *E) trie[E] {
	change := trieChange[E]{key: keyOf(e), hash: hashOf(keyOf(e))}
	next := trie[E]{len: t.len}
	switch {
	case t.inner != nil:
		next.inner = change.putInner(t.inner, 0, e)
	case t.leaf == nil:
		next.leaf = newLeaf([]hashedEntry[*E]{{change.hash, e}})
		change.added = true
	default:
		if next.leaf = change.putLeaf(t.leaf, 0, e); next.leaf == nil {
			next.inner = newInner(overflow(t.leaf, e), 0)
		}
	}
	if change.added {
		next.len++
	}
	return next
}

// without returns a trie without the entry with a key.
func (t *trie[E]) without(key string) trie[E] {
	change := trieChange[E]{key: key, hash: hashOf(key)}
	n, l, found := change.remove(t.inner, t.leaf, 0)
	if !found {
		return *t
	}
	if l != nil && len(l.entries) == 0 {
		l = nil
	}
	return trie[E]{inner: n, leaf: l, len: t.len - 1}
}

// trieChange is one change of a trie, of the entry with a key.
type trieChange[E any] struct {
	key  string
	hash uint64
	// added is set if the change added an entry.
	added bool
}

func (w *trieChange[E]) putInner(n *innerNode[E], depth int, e *E) *innerNode[E] {
	next := *n
	k := childIndex(w.hash, depth)
	child, l := n.child(k)
	if child != nil {
		next.setInner(k, w.putInner(child, depth+1, e))
		return &next
	}
	first, count := n.sharedSlots(k)
	if put := w.putLeaf(l, depth+1, e); put != nil {
		next.setLeaf(first, count, put)
	} else {
		next.fill(first, count, overflow(l, e), depth)
	}
	return &next
}

// putLeaf is trie.with for a leaf below depth levels of inner nodes. It returns nil if the leaf is full.
func (w *trieChange[E]) putLeaf(l *leafNode[E], depth int, e *E) *leafNode[E] {
	if at := l.find(w.hash, w.key); at >= 0 {
		next := l.copy(len(l.entries))
		next.entries[at] = e
		return next
	}
	w.added = true
	if len(l.entries) >= maxLeafEntries && depth < maxDepth {
		return nil
	}
	next := l.copy(len(l.entries) + 1)
	next.set(len(l.entries), w.hash, e)
	return next
}

// overflow returns the entries of a full leaf plus e, for newInner.
func overflow[E any](l *leafNode[E], e *E) []hashedEntry[*E] {
	return hashEntries(append(append(make([]*E, 0, maxLeafEntries+1), l.entries...), e)...)
}

// remove is trie.without for a node: at most one of n and l is set. It can return an empty leaf.
func (w *trieChange[E]) remove(n *innerNode[E], l *leafNode[E],
	depth int) (*innerNode[E], *leafNode[E], bool) {
	if n == nil {
		l, found := w.removeFrom(l)
		return nil, l, found
	}
	k := childIndex(w.hash, depth)
	child, leaf := n.child(k)
	newChild, remainingLeaf, found := w.remove(child, leaf, depth+1)
	if !found {
		return n, nil, false
	}
	next := *n
	if newChild != nil {
		next.setInner(k, newChild)
		return &next, nil, true
	}
	first, count := n.sharedSlots(k)
	next.setLeaf(first, count, remainingLeaf)
	if merged := next.collapse(); merged != nil {
		return nil, merged, true
	}
	return &next, nil, true
}

func (w *trieChange[E]) removeFrom(l *leafNode[E]) (*leafNode[E], bool) {
	if l == nil {
		return nil, false
	}
	at := l.find(w.hash, w.key)
	if at < 0 {
		return l, false
	}
	last := len(l.entries) - 1
	next := l.copy(last)
	if at < last { // the last entry fills the gap
		next.set(at, hashOf(keyOf(l.entries[last])), l.entries[last])
	}
	return next, true
}
