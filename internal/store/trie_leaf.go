package store

import (
	"encoding/binary"
	"math/bits"
)

const (
	// leafMax is the number of entries from which on a leaf is split. With the tags it fills a size class.
	leafMax = 24
	// tagBits is how many bits of a hash a tag has.
	tagBits = 8
)

// leaf holds entries in no order. tags are the lowest bits of the hashes of the first entries, so that most
// of those that do not match need not be looked at.
type leaf[E any] struct {
	tags    [leafMax]byte
	entries []*E
}

func tag(hash uint64) byte { return byte(hash) }

// makeLeaf returns a leaf with as many entries, which are nil. Both are one piece of memory: that is one
// allocation for each write, and one place for a reader to wait for.
func makeLeaf[E any](entries int) *leaf[E] {
	switch {
	case entries <= 4:
		l := &roomy[E, [4]*E]{}
		l.entries = l.room[:entries]
		return &l.leaf
	case entries <= 8:
		l := &roomy[E, [8]*E]{}
		l.entries = l.room[:entries]
		return &l.leaf
	case entries <= 12:
		l := &roomy[E, [12]*E]{}
		l.entries = l.room[:entries]
		return &l.leaf
	case entries <= 16:
		l := &roomy[E, [16]*E]{}
		l.entries = l.room[:entries]
		return &l.leaf
	case entries <= 20:
		l := &roomy[E, [20]*E]{}
		l.entries = l.room[:entries]
		return &l.leaf
	case entries <= leafMax:
		l := &roomy[E, [leafMax]*E]{}
		l.entries = l.room[:entries]
		return &l.leaf
	default:
		return &leaf[E]{entries: make([]*E, entries)}
	}
}

// roomy is a leaf with its entries.
type roomy[E, Room any] struct {
	leaf[E]
	room Room
}

func newLeaf[E any](entries []hashed[*E]) *leaf[E] {
	l := makeLeaf[E](len(entries))
	for i, e := range entries {
		l.set(i, e.hash, e.entry)
	}
	return l
}

// find returns the place of an entry, or -1.
func (l *leaf[E]) find(hash uint64, match func(*E) bool) int {
	for at := l.next(0, hash); at >= 0; at = l.next(at+1, hash) {
		if match(l.entries[at]) {
			return at
		}
	}
	return -1
}

// next returns the first place from at on where an entry of that hash may be, or -1. It compares eight tags
// at a time: those that are equal become zero bytes, and a zero byte is one that lends when one is
// subtracted. A byte of one after a zero byte passes for zero, too, which costs a look at its entry.
func (l *leaf[E]) next(at int, hash uint64) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	wanted := uint64(tag(hash)) * ones
	for ; at < leafMax; at = at&^7 + 8 {
		word := binary.LittleEndian.Uint64(l.tags[at&^7:]) ^ wanted
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
func (l *leaf[E]) all(yield func(*E) bool) bool {
	for _, e := range l.entries {
		if !yield(e) {
			return false
		}
	}
	return true
}

// copy returns a copy with room for another number of entries, of which no more than that are copied.
func (l *leaf[E]) copy(entries int) *leaf[E] {
	next := makeLeaf[E](entries)
	next.tags = l.tags
	copy(next.entries, l.entries)
	return next
}

func (l *leaf[E]) set(at int, h uint64, e *E) {
	l.entries[at] = e
	if at < leafMax {
		l.tags[at] = tag(h)
	}
}
