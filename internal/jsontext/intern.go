package jsontext

import (
	"encoding/binary"
	"sync/atomic"
	"unicode/utf8"
)

const (
	// maxInterned is the length up to which strings are shared. Longer ones seldom repeat.
	maxInterned = 48
	// internBits is the logarithm of the number of shared strings. With maxInterned this bounds the memory of a
	// table to less than a megabyte, whatever it is fed.
	internBits = 12
	// ageBits is the logarithm of the number of documents within which a string has to occur again.
	ageBits = 8
)

// interned is a string that many objects share, also as an interface value: putting a string into an
// interface costs an allocation too.
type interned struct {
	text  string
	value any
	plain bool // a text between quotes that looks like this one is this one
}

// internTable remembers recent strings, one for each slot. It is safe for concurrent use without locks: a slot
// is replaced as a whole, and losing a race costs one more copy of a string.
type internTable struct {
	slots [1 << internBits]atomic.Pointer[interned]
	// seen holds the hash and the age of the last string that missed in each slot. Only a string that misses twice in
	// turn, and within one age, gets the slot, so that names and UIDs, which occur once in each object, neither evict
	// what is common nor cost the allocation of an entry, however often the same objects are read.
	seen [1 << internBits]atomic.Uint32
	// documents counts what has been read.
	documents atomic.Uint32
	// next holds the slot of the key that came after the key in each slot: objects of one type have their
	// keys in the same order, and comparing with a guess is cheaper than searching. Slots, because pointers
	// from entry to entry would keep evicted ones alive.
	next [1 << internBits]atomic.Uint32
	// usual holds the slot of the last shared value of the key in each slot: many fields have one value nearly
	// always.
	usual [1 << internBits]atomic.Uint32
}

// share returns the shared form of text and its slot, or nil when it is too long or has not occurred recently.
func (t *internTable) share(text []byte) (*interned, uint32) {
	if len(text) > maxInterned {
		return nil, 0
	}
	hash := mix(text)
	slot := uint32(hash >> (64 - internBits))
	if e := t.slots[slot].Load(); e != nil && e.text == string(text) {
		return e, slot
	}
	if mark := uint32(hash)<<8 | t.age(); t.seen[slot].Load() != mark {
		t.seen[slot].Store(mark)
		return nil, 0
	}
	s := string(text)
	e := &interned{text: s, value: s, plain: isPlain(text)}
	t.slots[slot].Store(e)
	return e, slot
}

// age is the low byte of the number of an age, which is some hundred documents long.
func (t *internTable) age() uint32 { return t.documents.Load() >> ageBits & 0xff }

// guess returns the string, and its slot, that link has for slot, or nil if data does not begin with that
// string and a quote.
func (t *internTable) guess(link *[1 << internBits]atomic.Uint32, slot uint32, data []byte) (*interned, uint32) {
	next := link[slot%(1<<internBits)].Load() % (1 << internBits) // for the compiler to see that they are in range
	e := t.slots[next].Load()
	if e == nil || !e.plain || len(data) <= len(e.text) || data[len(e.text)] != '"' || string(data[:len(e.text)]) != e.text {
		return nil, 0
	}
	return e, next
}

// follow notes in link that the string in slot next belongs to the one in slot.
func follow(link *[1 << internBits]atomic.Uint32, slot, next uint32) {
	if l := &link[slot%(1<<internBits)]; l.Load() != next {
		l.Store(next)
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
