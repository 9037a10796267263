package decode

import (
	"encoding/binary"
	"sync/atomic"
)

// field is a field of a struct, also of one that is embedded.
type field struct {
	// quoted is the key in JSON with the quote and the colon after it.
	quoted string
	// words are the first bytes of quoted, as they are compared: eight at a time.
	words [keyWords]maskedWord
	// long says that quoted is longer than its words.
	long   bool
	isText bool // a string, whose codec is known
	offset uintptr
	decode codec
	// next is which field came after it last time: objects of one type have their keys in the same order, and
	// comparing with a guess is cheaper than searching.
	next atomic.Uint32
}

// maskedWord is up to eight bytes; those that do not count are zero in both.
type maskedWord struct{ bytes, mask uint64 }

const (
	keyWords  = 3
	wordBytes = 8
)

// set says what the field is.
func (f *field) set(named named, decode codec) {
	f.quoted, f.offset, f.decode, f.isText = named.name+`":`, named.offset, decode, isText(named.typ)
	f.long = len(f.quoted) > keyWords*wordBytes
	for k := range f.words {
		var text, mask [wordBytes]byte
		for at := range copy(text[:], f.quoted[min(k*wordBytes, len(f.quoted)):]) {
			mask[at] = 0xff
		}
		f.words[k] = maskedWord{binary.LittleEndian.Uint64(text[:]), binary.LittleEndian.Uint64(mask[:])}
	}
}

// match returns the end of the key of the field at i, with the colon; a negative number where there is
// another.
func (f *field) match(data []byte, i int) int {
	end := i + len(f.quoted)
	if i+keyWords*wordBytes > len(data) || f.long {
		if end <= len(data) && string(data[i:end]) == f.quoted {
			return end
		}
		return -1
	}
	word := data[i : i+keyWords*wordBytes]
	first := binary.LittleEndian.Uint64(word) ^ f.words[0].bytes
	second := binary.LittleEndian.Uint64(word[wordBytes:]) ^ f.words[1].bytes
	third := binary.LittleEndian.Uint64(word[2*wordBytes:]) ^ f.words[2].bytes
	if first&f.words[0].mask|second&f.words[1].mask|third&f.words[2].mask != 0 {
		return -1
	}
	return end
}
