package jsontext

import (
	"encoding/binary"
	"sync/atomic"
	"unicode/utf8"
)

const (
	// maxInterned is the length up to which strings are shared. Longer ones seldom repeat.
	maxInterned = 48
	// internBits is the logarithm of the number of shared strings. With maxInterned this bounds the memory of
	// a table to less than a megabyte, and twice that of strings that were evicted while others lead to them,
	// whatever it is fed.
	internBits = 12
	// ageBits is the logarithm of the number of documents within which a string has to occur again.
	ageBits = 8
)

// interned is a string that many objects share, also as an interface value: putting a string into an
// interface costs an allocation too. It is 64 bytes, a line of the processor's caches: where objects are
// decoded now and then, fetching what is known of their strings takes longer than using it.
type interned struct {
	text  string
	value any
	// next is the key that came after this one: objects of one type have their keys in the same order, and
	// comparing with a guess is cheaper than searching. usual is the last shared value of this key: many
	// fields have one value nearly always.
	next, usual atomic.Pointer[interned]
	slot        uint32
	evicted     atomic.Bool // another one has its slot
	plain       bool        // a text between quotes that looks like this one is this one
}

// internTable remembers recent strings, one for each slot. It is safe for concurrent use without locks: a
// slot is replaced as a whole, and losing a race costs one more copy of a string.
type internTable struct {
	slots [1 << internBits]atomic.Pointer[interned]
	// seen holds the hash and the age of the last string that missed in each slot. Only a string that misses
	// twice in turn, and within one age, gets the slot, so that names and UIDs, which occur once in each
	// object, neither evict what is common nor cost the allocation of an entry, however often the same
	// objects are read.
	seen [1 << internBits]atomic.Uint32
	// documents counts what has been read.
	documents atomic.Uint32
	// start is what the first key of a document comes after.
	start interned
}

// share returns the shared form of text, or nil when it is too long or has not occurred recently.
func (t *internTable) share(text []byte) *interned {
	if len(text) > maxInterned {
		return nil
	}
	hash := mix(text)
	slot := uint32(hash >> (64 - internBits))
	if e := t.slots[slot].Load(); e != nil && e.text == string(text) {
		return e
	}
	if mark := uint32(hash)<<8 | t.age(); t.seen[slot].Load() != mark {
		t.seen[slot].Store(mark)
		return nil
	}
	s := string(text)
	e := &interned{text: s, value: s, slot: slot, plain: isPlain(text)}
	if old := t.slots[slot].Swap(e); old != nil {
		old.evict()
	}
	return e
}

// evict has nobody find the string any more, and it nothing that others have evicted: what an entry still
// leads to would stay in memory with it.
func (e *interned) evict() {
	e.evicted.Store(true)
	e.next.Store(nil)
	e.usual.Store(nil)
}

// age is the low byte of the number of an age, which is some hundred documents long.
func (t *internTable) age() uint32 { return t.documents.Load() >> ageBits & 0xff }

// guess returns the string that link has, or nil if data does not begin with that string and a quote.
func guess(link *atomic.Pointer[interned], data []byte) *interned {
	e := link.Load()
	if e == nil || !e.plain || len(data) <= len(e.text) || data[len(e.text)] != '"' ||
		string(data[:len(e.text)]) != e.text || e.evicted.Load() {
		return nil
	}
	return e
}

// follow notes in link, of a string that has not been evicted, that e belongs to it.
func (e *interned) follow(link *atomic.Pointer[interned], of *interned) {
	if link.Load() != e && !of.evicted.Load() {
		link.Store(e)
	}
}

func isPlain(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c == '"' || c == '\\' {
			return false
		}
	}
	return utf8.Valid(text)
}

// mix hashes the length and the first and last bytes of text. Strings that agree in these merely compete for
// a slot.
func mix(text []byte) uint64 {
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
