package decode

import "sync/atomic"

// field is a field of a struct, or of a struct embedded in it.
type field struct {
	// keyEnd is the JSON key after its opening quote: the name, the closing quote and the colon.
	keyEnd string
	isText bool // a string, decoded by stringCodec
	offset uintptr
	decode codec
	// likelyNext is a guess of the next field: the index of the field that followed in an earlier object.
	// Objects of one type have their keys in the same order, and checking a guess is cheaper than a lookup.
	likelyNext atomic.Uint32
}

// match compares the JSON key that begins at i, after its opening quote, with the key of the field. It
// returns the index after the colon, or -1 if the keys differ.
func (f *field) match(data []byte, i int) int {
	end := i + len(f.keyEnd)
	if end <= len(data) && string(data[i:end]) == f.keyEnd {
		return end
	}
	return -1
}
