package jsontext

import (
	"encoding/binary"
	"sync/atomic"
	"unicode/utf8"
)

const (
	// maxInternedLength is the maximum length of shared strings. Longer ones rarely recur.
	maxInternedLength = 48
	// internBits is the logarithm of the number of shared strings. Together with maxInternedLength it limits
	// the memory of a table to less than a megabyte, plus at most twice as much for evicted strings that
	// others refer to.
	internBits = 12
	// ageBits is the logarithm of the number of documents within which a string has to recur.
	ageBits = 8
)

// internedString is a string shared by many objects, also as an interface value, because the conversion to an
// interface allocates too. Its size is 64 bytes, one cache line.
type internedString struct {
	text  string
	value any
	// nextKey is the key that followed this one last time. Objects of one type have their keys in the same
	// order, and comparing with a prediction is cheaper than searching. lastValue is the last shared value of
	// this key. Many fields nearly always have the same value.
	nextKey, lastValue atomic.Pointer[internedString]
	slot               uint32
	evicted            atomic.Bool // another string has its slot
	hasNoEscapes       bool        // its JSON has no escapes
}

// internTable caches recent strings, one for each slot. It is safe for concurrent use without locks: slots
// are replaced atomically, and losing a race only costs another copy of a string.
type internTable struct {
	slots [1 << internBits]atomic.Pointer[internedString]
	// missMarks has the hash and the age of the last string that missed in each slot. A string gets the slot
	// if it misses twice in succession within one age. Names and UIDs, which occur once in each object, thus
	// neither evict common strings nor allocate entries, even if the same objects are read repeatedly.
	missMarks [1 << internBits]atomic.Uint32
	// documents is the number of decoded documents.
	documents atomic.Uint32
	// start is the predecessor of the first key of a document.
	start internedString
}

// intern returns the shared form of text, or nil if it is too long or has not occurred recently.
func (t *internTable) intern(text []byte) *internedString {
	if len(text) > maxInternedLength {
		return nil
	}
	hash := sampleHash(text)
	slot := uint32(hash >> (64 - internBits))
	if e := t.slots[slot].Load(); e != nil && e.text == string(text) {
		return e
	}
	if missMark := uint32(hash)<<8 | t.documents.Load()>>ageBits&0xff; t.missMarks[slot].Load() != missMark {
		t.missMarks[slot].Store(missMark)
		return nil
	}
	s := string(text)
	e := &internedString{text: s, value: s, slot: slot, hasNoEscapes: needsNoUnescaping(text)}
	if old := t.slots[slot].Swap(e); old != nil {
		old.evicted.Store(true)
		old.nextKey.Store(nil) // its links must not retain other entries
		old.lastValue.Store(nil)
	}
	return e
}

// predictedString returns the string that link refers to, or nil if data does not begin with it and a quote.
func predictedString(link *atomic.Pointer[internedString], data []byte) *internedString {
	e := link.Load()
	if e == nil || !e.hasNoEscapes || len(data) <= len(e.text) || data[len(e.text)] != '"' ||
		string(data[:len(e.text)]) != e.text || e.evicted.Load() {
		return nil
	}
	return e
}

// storeLink stores e in link, which belongs to entry, unless entry has been evicted.
func (e *internedString) storeLink(link *atomic.Pointer[internedString], entry *internedString) {
	if link.Load() != e && !entry.evicted.Load() {
		link.Store(e)
	}
}

func needsNoUnescaping(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c == '"' || c == '\\' {
			return false
		}
	}
	return utf8.Valid(text)
}

// sampleHash hashes the length and both ends of text. Strings with the same hash compete for a slot.
func sampleHash(text []byte) uint64 {
	const odd1, odd2 = 0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f
	n := len(text)
	var first, last uint64
	switch {
	case n >= 8:
		first, last = binary.LittleEndian.Uint64(text), binary.LittleEndian.Uint64(text[n-8:])
	case n >= 4:
		first, last = uint64(binary.LittleEndian.Uint32(text)), uint64(binary.LittleEndian.Uint32(text[n-4:]))
	case n > 0:
		first, last = uint64(text[0])|uint64(text[n/2])<<8, uint64(text[n-1])
	}
	h := (first ^ uint64(n)*odd2) * odd1
	h ^= h >> 29
	h = (h ^ last) * odd2
	h ^= h >> 32
	return h * odd1
}
