package store

import (
	"encoding/binary"
	"math/bits"
)

const (
	// maxLeafEntries is the number of entries above which a leaf is split. With that many tags, the leaf
	// fills a size class of the allocator.
	maxLeafEntries = 24
	// tagBits is the number of hash bits in a tag.
	tagBits = 8
)

// leafNode holds unordered entries. tags are the lowest bits of the hashes of the first maxLeafEntries
// entries. With them, a search skips most entries that do not match.
type leafNode[E any] struct {
	tags    [maxLeafEntries]byte
	entries []*E
}

func hashTag(hash uint64) byte { return byte(hash) }

// makeLeaf returns a leaf with the given number of nil entries. Leaf and entries are one allocation, to save
// work for writers and a cache miss for readers.
func makeLeaf[E any](entries int) *leafNode[E] {
	switch {
	case entries <= 4:
		l := &inlineLeaf[E, [4]*E]{}
		l.entries = l.array[:entries]
		return &l.leafNode
	case entries <= 8:
		l := &inlineLeaf[E, [8]*E]{}
		l.entries = l.array[:entries]
		return &l.leafNode
	case entries <= 12:
		l := &inlineLeaf[E, [12]*E]{}
		l.entries = l.array[:entries]
		return &l.leafNode
	case entries <= 16:
		l := &inlineLeaf[E, [16]*E]{}
		l.entries = l.array[:entries]
		return &l.leafNode
	case entries <= 20:
		l := &inlineLeaf[E, [20]*E]{}
		l.entries = l.array[:entries]
		return &l.leafNode
	case entries <= maxLeafEntries:
		l := &inlineLeaf[E, [maxLeafEntries]*E]{}
		l.entries = l.array[:entries]
		return &l.leafNode
	default:
		return &leafNode[E]{entries: make([]*E, entries)}
	}
}

// inlineLeaf is a leaf allocated together with its entries.
type inlineLeaf[E, Array any] struct {
	leafNode[E]
	array Array
}

func newLeaf[E any](entries []hashedEntry[*E]) *leafNode[E] {
	l := makeLeaf[E](len(entries))
	for i, e := range entries {
		l.set(i, e.hash, e.entry)
	}
	return l
}

// find returns the index of the entry with a key, or -1.
func (l *leafNode[E]) find(hash uint64, key string) int {
	for at := l.nextCandidate(0, hash); at >= 0; at = l.nextCandidate(at+1, hash) {
		if keyOf(l.entries[at]) == key {
			return at
		}
	}
	return -1
}

// nextCandidate returns the first index >= at of an entry that may have that hash, or -1. It compares eight
// tags at a time: equal tags become zero bytes, which borrow when one is subtracted. The borrow can also
// mark a byte of value one after a zero byte; the caller then compares one more key.
func (l *leafNode[E]) nextCandidate(at int, hash uint64) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	pattern := uint64(hashTag(hash)) * ones
	for ; at < maxLeafEntries; at = at&^7 + 8 {
		word := binary.LittleEndian.Uint64(l.tags[at&^7:]) ^ pattern
		found := (word - ones) &^ word & tops >> (at & 7 * 8) << (at & 7 * 8)
		if found != 0 {
			at = at&^7 + bits.TrailingZeros64(found)/8
			break
		}
	}
	if at < len(l.entries) {
		return at
	}
	return -1
}

// all calls yield for each entry until it returns false.
func (l *leafNode[E]) all(yield func(*E) bool) bool {
	for _, e := range l.entries {
		if !yield(e) {
			return false
		}
	}
	return true
}

func (l *leafNode[E]) copy(entries int) *leafNode[E] {
	next := makeLeaf[E](entries)
	next.tags = l.tags
	copy(next.entries, l.entries)
	return next
}

func (l *leafNode[E]) set(at int, h uint64, e *E) {
	l.entries[at] = e
	if at < maxLeafEntries {
		l.tags[at] = hashTag(h)
	}
}
