package store

// trie is an immutable set of entries with 64-bit hashes. A change returns a new trie that shares all but one
// path with the old one. Readers need no lock. The zero value is empty.
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

// childIndex returns the child that a hash selects at a depth.
func childIndex(hash uint64, depth int) int { return int(hash>>(64-fanBits*(depth+1))) & (fanOut - 1) }

// leafOf returns the leaf for entries with that hash, which can be nil.
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

// leafFrom returns the leaf for entries with that hash, and the first hash after the leaf, which is zero
// after the last leaf. Iterating with next, in this trie or in a later version, visits all entries that both
// have.
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

// with returns a trie with e added, or replacing the entry that matches. hash returns the hash of an entry.
func (t *trie[E]) with(h uint64, e *E, match func(*E) bool, hash func(*E) uint64) trie[E] {
	w := trieChange[E]{newHash: h, match: match, hash: hash}
	next := trie[E]{len: t.len}
	switch {
	case t.inner != nil:
		next.inner = w.putInner(t.inner, 0, e)
	case t.leaf == nil:
		next.leaf = newLeaf([]hashedEntry[*E]{{h, e}})
		w.added = true
	default:
		if next.leaf = w.putLeaf(t.leaf, 0, e); next.leaf == nil {
			next.inner = newInner(w.overflow(t.leaf, e), 0)
		}
	}
	if w.added {
		next.len++
	}
	return next
}

// withoutEntry returns a trie without the entry that matches.
func (t *trie[E]) withoutEntry(h uint64, match func(*E) bool, hash func(*E) uint64) trie[E] {
	w := trieChange[E]{newHash: h, match: match, hash: hash}
	n, l, found := w.remove(t.inner, t.leaf, 0)
	if !found {
		return *t
	}
	if l != nil && len(l.entries) == 0 {
		l = nil
	}
	return trie[E]{inner: n, leaf: l, len: t.len - 1}
}

// trieChange is one change of a trie.
type trieChange[E any] struct {
	newHash uint64
	match   func(*E) bool
	hash    func(*E) uint64
	// added is set if the change added an entry.
	added bool
}

// putInner is trie.with for an inner node.
func (w *trieChange[E]) putInner(n *innerNode[E], depth int, e *E) *innerNode[E] {
	next := *n
	k := childIndex(w.newHash, depth)
	child, l := n.child(k)
	if child != nil {
		next.setInner(k, w.putInner(child, depth+1, e))
		return &next
	}
	first, count := n.sharedSlots(k)
	if put := w.putLeaf(l, depth+1, e); put != nil {
		next.setLeaf(first, count, put)
	} else {
		next.fill(first, count, w.overflow(l, e), depth)
	}
	return &next
}

// putLeaf is trie.with for a leaf below depth levels of inner nodes. It returns nil if the leaf is full.
func (w *trieChange[E]) putLeaf(l *leafNode[E], depth int, e *E) *leafNode[E] {
	if at := l.find(w.newHash, w.match); at >= 0 {
		next := l.copy(len(l.entries))
		next.entries[at] = e
		return next
	}
	w.added = true
	if len(l.entries) >= leafMax && depth < maxDepth {
		return nil
	}
	next := l.copy(len(l.entries) + 1)
	next.set(len(l.entries), w.newHash, e)
	return next
}

// overflow returns the entries of a full leaf plus e, sorted.
func (w *trieChange[E]) overflow(l *leafNode[E], e *E) []hashedEntry[*E] {
	entries := make([]hashedEntry[*E], 0, leafMax+1)
	for _, have := range l.entries {
		entries = append(entries, hashedEntry[*E]{w.hash(have), have})
	}
	entries = append(entries, hashedEntry[*E]{w.newHash, e})
	sortHashed(entries)
	return entries
}

// remove is trie.without for a node: at most one of n and l is set. It can return an empty leaf.
func (w *trieChange[E]) remove(n *innerNode[E], l *leafNode[E],
	depth int) (*innerNode[E], *leafNode[E], bool) {
	if n == nil {
		l, found := w.removeFrom(l)
		return nil, l, found
	}
	k := childIndex(w.newHash, depth)
	child, last := n.child(k)
	below, rest, found := w.remove(child, last, depth+1)
	if !found {
		return n, nil, false
	}
	next := *n
	if below != nil {
		next.setInner(k, below)
		return &next, nil, true
	}
	first, count := n.sharedSlots(k)
	next.setLeaf(first, count, rest)
	if merged := next.collapse(); merged != nil {
		return nil, merged, true
	}
	return &next, nil, true
}

func (w *trieChange[E]) removeFrom(l *leafNode[E]) (*leafNode[E], bool) {
	if l == nil {
		return nil, false
	}
	at := l.find(w.newHash, w.match)
	if at < 0 {
		return l, false
	}
	last := len(l.entries) - 1
	next := l.copy(last)
	if at < last { // the last entry fills the gap
		next.set(at, w.hash(l.entries[last]), l.entries[last])
	}
	return next, true
}
