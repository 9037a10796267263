package decode

import (
	"encoding/binary"
	"sync/atomic"
)

// field is a field of a struct, or of a struct embedded in it.
type field struct {
	// keyEnd is the JSON key after its opening quote: the name, the closing quote and the colon.
	keyEnd string
	// words are the first bytes of keyEnd, eight per word. Comparing words is faster than comparing bytes.
	words  [keyWords]maskedWord
	isLong bool // keyEnd does not fit into words
	isText bool // a string, decoded by stringCodec
	offset uintptr
	decode codec
	// likelyNext is a guess of the next field: the index of the field that followed in an earlier object.
	// Objects of one type have their keys in the same order, and checking a guess is cheaper than a lookup.
	likelyNext atomic.Uint32
}

// maskedWord is up to eight bytes. The unused bytes are zero in both fields.
type maskedWord struct{ bytes, mask uint64 }

const (
	// keyWords is the number of words that match compares.
	keyWords  = 3
	wordBytes = 8
)

func (f *field) set(named jsonField, decode codec) {
	f.keyEnd, f.offset, f.decode, f.isText = named.name+`":`, named.offset, decode, isText(named.typ)
	f.isLong = len(f.keyEnd) > keyWords*wordBytes
	for k := range f.words {
		var text, mask [wordBytes]byte
		for at := range copy(text[:], f.keyEnd[min(k*wordBytes, len(f.keyEnd)):]) {
			mask[at] = 0xff
		}
		f.words[k] = maskedWord{binary.LittleEndian.Uint64(text[:]), binary.LittleEndian.Uint64(mask[:])}
	}
}

// match compares the JSON key that begins at i, after its opening quote, with the key of the field. It
// returns the index after the colon, or -1 if the keys differ.
func (f *field) match(data []byte, i int) int {
	end := i + len(f.keyEnd)
	if i+keyWords*wordBytes > len(data) || f.isLong {
		if end <= len(data) && string(data[i:end]) == f.keyEnd {
			return end
		}
		return -1
	}
	key := data[i : i+keyWords*wordBytes]
	first := binary.LittleEndian.Uint64(key) ^ f.words[0].bytes
	second := binary.LittleEndian.Uint64(key[wordBytes:]) ^ f.words[1].bytes
	third := binary.LittleEndian.Uint64(key[2*wordBytes:]) ^ f.words[2].bytes
	if first&f.words[0].mask|second&f.words[1].mask|third&f.words[2].mask != 0 {
		return -1
	}
	return end
}
