package jsonpath

import (
	"bytes"
	"math"
	"slices"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// scanner validates a document and writes the values on the paths of a trie to a tape. It accepts exactly
// the documents that sigs.k8s.io/json accepts.
type scanner struct {
	raw     []byte
	entries []entry
	err     *jsontext.SyntaxError
}

// scan fills the tape with the values that the trie selects. The tape is unusable after an error.
func (t *tape) scan(raw []byte, selected *trie) error {
	if len(raw) > math.MaxInt32 {
		return &jsontext.SyntaxError{Offset: math.MaxInt32, Reason: "the document is larger than 2 GiB"}
	}
	s := scanner{raw: raw, entries: t.entries[:0]}
	end := s.scanValue(jsontext.SkipSpace(raw, 0), selected, 1)
	if end >= 0 {
		if end = jsontext.SkipSpace(raw, end); end < len(raw) {
			s.fail(end, "more after the top-level value")
		}
	}
	t.raw, t.entries = raw, s.entries
	if s.err != nil {
		return s.err
	}
	return nil
}

// fail records the first problem and returns -1, as every scan function does after a problem.
func (s *scanner) fail(at int, message string) int {
	if s.err == nil {
		if at >= len(s.raw) {
			message = "unexpected end"
		}
		s.err = &jsontext.SyntaxError{Offset: at, Reason: message}
	}
	return -1
}

// scanValue scans the value at i and returns the offset after it. selected selects the values to
// record; nil selects none. depth is the number of enclosing containers, including the value.
func (s *scanner) scanValue(i int, selected *trie, depth int) int {
	if selected == nil {
		return s.skip(i, depth)
	}
	if i >= len(s.raw) {
		return s.fail(i, "")
	}
	kind, end, flags := KindInvalid, 0, entryFlags(0)
	switch c := s.raw[i]; c {
	case '{', '[':
		if depth > maxDocumentDepth {
			return s.fail(i, "exceeded max depth")
		}
		return s.recordContainer(i, selected, depth, c)
	case '"':
		var encoded bool
		kind = KindString
		if end, encoded = s.scanString(i + 1); encoded {
			flags = encodedValue
		}
	case 't':
		kind, end = KindBool, s.scanLiteral(i, "true")
	case 'f':
		kind, end = KindBool, s.scanLiteral(i, "false")
	case 'n':
		kind, end = KindNull, s.scanLiteral(i, "null")
	default:
		kind, end = KindNumber, s.scanNumber(i)
	}
	if end >= 0 {
		s.entries = append(s.entries, entry{start: int32(i), end: int32(end),
			nextSibling: int32(len(s.entries) + 1), kind: kind, flags: flags})
	}
	return end
}

func (s *scanner) recordContainer(i int, selected *trie, depth int, open byte) int {
	entryIndex := len(s.entries)
	e := entry{start: int32(i), kind: KindArray}
	if open == '{' {
		e.kind = KindObject
	}
	s.entries = append(s.entries, e)
	end := -1
	switch members, elements := selected.forObject(), selected.forElements(); {
	case open == '{' && members != nil:
		end = s.scanObject(i, members, depth)
	case open == '[' && elements != nil:
		end = s.scanArray(i, elements, depth)
	default:
		end = s.skip(i, depth)
	}
	if end >= 0 {
		s.entries[entryIndex].end = int32(end)
		s.entries[entryIndex].nextSibling = int32(len(s.entries))
	}
	return end
}

func (s *scanner) scanObject(i int, selected *trie, depth int) int {
	raw := s.raw
	if i = jsontext.SkipSpace(raw, i+1); i < len(raw) && raw[i] == '}' {
		return i + 1
	}
	for {
		if i >= len(raw) || raw[i] != '"' {
			return s.fail(i, "expected a key")
		}
		keyStart := i + 1
		next, encoded := jsontext.ScanAnyString(raw, keyStart)
		if next < 0 {
			return s.fail(^next, jsontext.StringProblem(raw, ^next))
		}
		keyEnd := next - 1
		if i = jsontext.SkipSpace(raw, next); i >= len(raw) || raw[i] != ':' {
			return s.fail(i, "expected a colon after a key")
		}
		i = jsontext.SkipSpace(raw, i+1)
		child := selected.member(raw[keyStart:keyEnd], encoded)
		entryIndex := len(s.entries)
		if child == nil && i < len(raw) && raw[i] == '"' { // the most common unselected value
			if i = jsontext.ScanString(raw, i+1); i < 0 {
				return s.fail(^i, jsontext.StringProblem(raw, ^i))
			}
		} else if i = s.scanValue(i, child, depth+1); i < 0 {
			return -1
		}
		if child != nil {
			e := &s.entries[entryIndex]
			e.keyStart, e.keyEnd = int32(keyStart), int32(keyEnd)
			if encoded {
				e.flags |= encodedKey
			}
		}
		if i = jsontext.SkipSpace(raw, i); i >= len(raw) {
			return s.fail(i, "")
		}
		switch raw[i] {
		case ',':
			i = jsontext.SkipSpace(raw, i+1)
		case '}':
			return i + 1
		default:
			return s.fail(i, "expected a comma or a closing brace")
		}
	}
}

// scanArray scans a list and records its elements. The last entry is that of the list itself.
func (s *scanner) scanArray(i int, selected *trie, depth int) int {
	listIndex := len(s.entries) - 1
	raw := s.raw
	if i = jsontext.SkipSpace(raw, i+1); i < len(raw) && raw[i] == ']' {
		return i + 1
	}
	for n := int32(1); ; n++ {
		if i = s.scanValue(i, selected, depth+1); i < 0 {
			return -1
		}
		hasNext := false
		if i, hasNext = s.afterElement(i); !hasNext {
			if i >= 0 {
				s.entries[listIndex].elements = n
			}
			return i
		}
	}
}

// afterElement reads the comma after an element and returns the offset of the next one, or of the list's end.
func (s *scanner) afterElement(i int) (next int, hasNext bool) {
	i = jsontext.SkipSpace(s.raw, i)
	if i < len(s.raw) {
		switch s.raw[i] {
		case ',':
			return jsontext.SkipSpace(s.raw, i+1), true
		case ']':
			return i + 1, false
		}
	}
	return s.fail(i, "expected a comma or a closing bracket"), false
}

func (s *scanner) scanLiteral(i int, text string) int {
	end := jsontext.ScanLiteral(s.raw, i, text)
	if end < 0 {
		return s.fail(i, "expected "+text)
	}
	return end
}

// scanString scans a string from the byte after its opening quote and returns the offset after the
// closing quote. encoded reports whether the text has to be decoded.
func (s *scanner) scanString(i int) (end int, encoded bool) {
	if end, encoded = jsontext.ScanAnyString(s.raw, i); end < 0 {
		return s.fail(^end, jsontext.StringProblem(s.raw, ^end)), false
	}
	return end, encoded
}

// scanNumber rejects a number out of the range of float64, as sigs.k8s.io/json does.
func (s *scanner) scanNumber(i int) int {
	end, numberForm := jsontext.ScanNumber(s.raw, i)
	switch {
	case end < 0:
		return s.fail(^end, [...]string{
			jsontext.Integer: "expected a value", jsontext.Fraction: "expected digits after the point",
			jsontext.Exponent: "expected digits in the exponent",
		}[numberForm])
	case !jsontext.IsFloat64(s.raw[i:end], numberForm):
		return s.fail(i, "the number is out of range")
	}
	return end
}

// skip scans an unselected value. Most values are unselected: managed fields are often half of a document.
func (s *scanner) skip(i int, depth int) int {
	end, tooDeep := jsontext.Skip(s.raw, i, maxDocumentDepth-depth+1)
	switch {
	case tooDeep:
		return s.fail(^end, "exceeded max depth")
	case end < 0:
		return s.fail(^end, jsontext.SkipProblem(s.raw, ^end))
	}
	return end
}

// tape is the result of scanning a document: an entry for each value that a path may need, in document order,
// so that children directly follow their parent.
type tape struct {
	raw     []byte
	entries []entry
}

// entry is one value of the scanned document. Offsets have 32 bits, because a document is limited to 2 GiB.
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
		return unescape(key)
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
		s.boolean = t.raw[e.start] == 't'
	case KindNumber:
		s.integer, s.float, s.isInt = parseNumber(t.raw[e.start:e.end])
	case KindString:
		s.raw = unquote(t.raw[e.start:e.end], e.flags&encodedValue != 0)
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
