package store

// trie is an immutable set of entries, found by a 64-bit hash: changing it makes another trie, which shares
// all but one path with the first. Whoever has one may read it for ever, without a lock. The zero value is
// empty.
//
// Each level of inner nodes takes four bits of the hash, from the top down, until a leaf holds what is left.
// Slots of an inner node that are next to each other share a leaf as long as their entries fit in one, so
// that leaves are two thirds full on average however many entries there are. Entries that are new to each
// other in most of their hash's bits do not exist in practice, but do no harm.
type trie[E any] struct {
	// root is one of the two, or neither.
	inner *inner[E]
	leaf  *leaf[E]
	len   int
}

const (
	fanBits = 4
	fan     = 1 << fanBits
	// maxDepth is where the hash's bits are used up, but for the tag: leaves there are never split.
	maxDepth = (64 - tagBits) / fanBits
)

// slot is the child that a hash leads to at a depth.
func slot(hash uint64, depth int) int { return int(hash>>(64-fanBits*(depth+1))) & (fan - 1) }

// leafOf returns the leaf in which an entry of that hash is, if there is one; it may be nil.
func (t *trie[E]) leafOf(hash uint64) *leaf[E] {
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

// leafFrom returns the leaf with the entries of a hash and of others next to it, and the first hash after
// those, which is zero behind the last leaf. Who goes on from there, in this trie or in one that it has
// become, misses nothing that is in both.
func (t *trie[E]) leafFrom(hash uint64) (l *leaf[E], next uint64) {
	n := t.inner
	if n == nil {
		return t.leaf, 0
	}
	for depth := 0; ; depth++ {
		k := slot(hash, depth)
		child, l := n.child(k)
		if child == nil {
			first, count := n.sharing(k)
			shift := 64 - fanBits*(depth+1)
			return l, hash&^(1<<(shift+fanBits)-1) + uint64(first+count)<<shift
		}
		n = child
	}
}

// find returns the entry of that hash that matches.
func (t *trie[E]) find(hash uint64, match func(*E) bool) (found *E, ok bool) {
	if l := t.leafOf(hash); l != nil {
		if at := l.find(hash, match); at >= 0 {
			return l.entries[at], true
		}
	}
	return found, false
}

// all calls yield for each entry, in an order that does not change, until it returns false.
func (t *trie[E]) all(yield func(*E) bool) {
	if t.inner != nil {
		t.inner.all(yield)
	} else if t.leaf != nil {
		t.leaf.all(yield)
	}
}

// with returns a trie that holds e, in place of the entry that matches if there is one. hash gives the hash
// of any entry.
func (t *trie[E]) with(h uint64, e *E, match func(*E) bool, hash func(*E) uint64) trie[E] {
	w := writing[E]{h: h, match: match, hash: hash}
	next := trie[E]{len: t.len}
	switch {
	case t.inner != nil:
		next.inner = w.putInner(t.inner, 0, e)
	case t.leaf == nil:
		next.leaf = newLeaf([]hashed[*E]{{h, e}})
		w.grown = true
	default:
		if next.leaf = w.putLeaf(t.leaf, 0, e); next.leaf == nil {
			next.inner = newInner(w.overflow(t.leaf, e), 0)
		}
	}
	if w.grown {
		next.len++
	}
	return next
}

// without returns a trie that lacks the entry that matches.
func (t *trie[E]) without(h uint64, match func(*E) bool, hash func(*E) uint64) trie[E] {
	w := writing[E]{h: h, match: match, hash: hash}
	n, l, found := w.remove(t.inner, t.leaf, 0)
	if !found {
		return *t
	}
	if l != nil && len(l.entries) == 0 {
		l = nil
	}
	return trie[E]{inner: n, leaf: l, len: t.len - 1}
}

// writing is one change of a trie.
type writing[E any] struct {
	h     uint64
	match func(*E) bool
	hash  func(*E) uint64
	// grown is set where an entry was added rather than replaced.
	grown bool
}

// putInner is trie.with for an inner node.
func (w *writing[E]) putInner(n *inner[E], depth int, e *E) *inner[E] {
	next := *n
	k := slot(w.h, depth)
	child, l := n.child(k)
	if child != nil {
		next.setInner(k, w.putInner(child, depth+1, e))
		return &next
	}
	first, count := n.sharing(k)
	if put := w.putLeaf(l, depth+1, e); put != nil {
		next.setLeaf(first, count, put)
	} else {
		next.fill(first, count, w.overflow(l, e), depth)
	}
	return &next
}

// putLeaf is trie.with for a leaf below depth levels of inner nodes. It returns nil where the leaf is full.
func (w *writing[E]) putLeaf(l *leaf[E], depth int, e *E) *leaf[E] {
	if at := l.find(w.h, w.match); at >= 0 {
		next := l.copy(len(l.entries))
		next.entries[at] = e
		return next
	}
	w.grown = true
	if len(l.entries) >= leafMax && depth < maxDepth {
		return nil
	}
	next := l.copy(len(l.entries) + 1)
	next.set(len(l.entries), w.h, e)
	return next
}

// overflow returns the entries of a full leaf and one more, sorted.
func (w *writing[E]) overflow(l *leaf[E], e *E) []hashed[*E] {
	entries := make([]hashed[*E], 0, leafMax+1)
	for _, have := range l.entries {
		entries = append(entries, hashed[*E]{w.hash(have), have})
	}
	entries = append(entries, hashed[*E]{w.h, e})
	sortHashed(entries)
	return entries
}

// remove is trie.without for a node: one of the two, or neither. A leaf may lose its last entry.
func (w *writing[E]) remove(n *inner[E], l *leaf[E], depth int) (*inner[E], *leaf[E], bool) {
	if n == nil {
		l, found := w.removeFrom(l)
		return nil, l, found
	}
	k := slot(w.h, depth)
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
	first, count := n.sharing(k)
	next.setLeaf(first, count, rest)
	if whole := next.collapsed(); whole != nil {
		return nil, whole, true
	}
	return &next, nil, true
}

func (w *writing[E]) removeFrom(l *leaf[E]) (*leaf[E], bool) {
	if l == nil {
		return nil, false
	}
	at := l.find(w.h, w.match)
	if at < 0 {
		return l, false
	}
	last := len(l.entries) - 1
	next := l.copy(last)
	if at < last { // the last entry moves into the gap
		next.set(at, w.hash(l.entries[last]), l.entries[last])
	}
	return next, true
}
