package jsonpath

import (
	"bytes"
	"slices"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// tape is the result of scanning a document: an entry for each value that a path may need, in document order,
// so that children directly follow their parent.
type tape struct {
	raw     []byte
	entries []entry
}

// entry is one value. Offsets have 32 bits, because a document is limited to 2 GiB.
type entry struct {
	start, end       int32 // the bytes of the value
	keyStart, keyEnd int32 // bytes of its key without quotes; equal for an empty key or an element
	nextSibling      int32 // index of the entry after this value and its descendants
	elements         int32 // number of elements of a list
	kind             Kind
	flags            entryFlags
}

type entryFlags uint8

const (
	// encodedValue and encodedKey mark strings that need decoding because of escapes or invalid UTF-8.
	encodedValue entryFlags = 1 << iota
	encodedKey
)

// key returns the decoded key of a member. It allocates only for a key with escapes.
func (t *tape) key(i int32) []byte {
	e := &t.entries[i]
	key := t.raw[e.keyStart:e.keyEnd]
	if e.flags&encodedKey != 0 {
		return appendUnquoted(nil, key)
	}
	return key
}

func (t *tape) keyIs(i int32, name string) bool {
	e := &t.entries[i]
	if e.flags&encodedKey != 0 {
		return string(t.key(i)) == name
	}
	return string(t.raw[e.keyStart:e.keyEnd]) == name
}

// sortedMembers appends the members of an object in the order of their keys, without members that a later
// duplicate replaces.
func (t *tape) sortedMembers(object int32, dst []int32) []int32 {
	for c := object + 1; c < t.entries[object].nextSibling; c = t.entries[c].nextSibling {
		dst = append(dst, c)
	}
	slices.SortStableFunc(dst, func(a, b int32) int { return bytes.Compare(t.key(a), t.key(b)) })
	unique := dst[:0]
	for i, c := range dst {
		if i+1 == len(dst) || !bytes.Equal(t.key(c), t.key(dst[i+1])) {
			unique = append(unique, c)
		}
	}
	return unique
}

func (t *tape) scalar(i int32) scalar {
	e := &t.entries[i]
	s := scalar{kind: e.kind}
	switch e.kind {
	case KindBool:
		s.b = t.raw[e.start] == 't'
	case KindNumber:
		s.i, s.f, s.isInt = parseNumber(t.raw[e.start:e.end])
	case KindString:
		s.raw = unquoted(t.raw[e.start:e.end], e.flags&encodedValue != 0)
	}
	return s
}

// parseNumber parses a valid JSON number like apimachinery; a number out of range is infinite.
func parseNumber(raw []byte) (i int64, f float64, isInt bool) {
	i, f, isInt, _ = jsontext.ParseNumber(raw)
	return i, f, isInt
}

func (t *tape) value(i int32) Value {
	e := &t.entries[i]
	return Value{raw: t.raw[e.start:e.end:e.end], kind: e.kind, encoded: e.flags&encodedValue != 0}
}
