package jsonpath

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"
)

// SyntaxError says that a document is not valid JSON, or exceeds a limit.
type SyntaxError struct {
	Offset  int // the byte at which the problem was noticed
	Message string
}

// Error gives the problem and its place.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Message)
}

// scanner checks a document from end to end and writes the values on the way of a trie to a tape.
// It accepts exactly what sigs.k8s.io/json accepts.
type scanner struct {
	raw     []byte
	entries []entry
	err     *SyntaxError
}

// scan fills the tape with what the trie asks for. Nothing of it may be used after an error.
func (t *tape) scan(raw []byte, wanted *trie) error {
	if len(raw) > math.MaxInt32 {
		return &SyntaxError{Offset: math.MaxInt32, Message: "the document is larger than 2 GiB"}
	}
	s := scanner{raw: raw, entries: t.entries[:0]}
	end := s.value(skipSpace(raw, 0), wanted, 1)
	if end >= 0 {
		if end = skipSpace(raw, end); end < len(raw) {
			s.fail(end, "more after the top-level value")
		}
	}
	t.raw, t.entries = raw, s.entries
	if s.err != nil {
		return s.err
	}
	return nil
}

func skipSpace(raw []byte, i int) int {
	for i < len(raw) && raw[i] <= ' ' && (raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\t' || raw[i] == '\r') {
		i++
	}
	return i
}

// fail records the problem; every scan function returns -1 after one.
func (s *scanner) fail(at int, message string) int {
	if s.err == nil {
		if at >= len(s.raw) {
			message = "unexpected end"
		}
		s.err = &SyntaxError{Offset: at, Message: message}
	}
	return -1
}

// value scans the value at i and returns the offset after it. wanted says what of it to record; nil
// is nothing at all. depth counts the containers around it, itself included.
func (s *scanner) value(i int, wanted *trie, depth int) int {
	if i >= len(s.raw) {
		return s.fail(i, "")
	}
	kind, end, flags := KindInvalid, 0, entryFlags(0)
	switch c := s.raw[i]; c {
	case '{', '[':
		if depth > limitDocumentDepth {
			return s.fail(i, "exceeded max depth")
		}
		switch {
		case wanted != nil:
		case c == '{':
			return s.skipObject(i, depth)
		default:
			return s.skipArray(i, depth)
		}
		return s.recordContainer(i, wanted, depth, c)
	case '"':
		var encoded bool
		kind = KindString
		if end, encoded = s.string(i + 1); encoded {
			flags = encodedValue
		}
	case 't':
		kind, end = KindBool, s.literal(i, "true")
	case 'f':
		kind, end = KindBool, s.literal(i, "false")
	case 'n':
		kind, end = KindNull, s.literal(i, "null")
	default:
		kind, end = KindNumber, s.number(i)
	}
	if wanted != nil && end >= 0 {
		s.entries = append(s.entries, entry{start: int32(i), end: int32(end), skip: int32(len(s.entries) + 1), kind: kind, flags: flags})
	}
	return end
}

func (s *scanner) recordContainer(i int, wanted *trie, depth int, open byte) int {
	at := len(s.entries)
	e := entry{start: int32(i), kind: KindArray}
	if open == '{' {
		e.kind = KindObject
	}
	s.entries = append(s.entries, e)
	end := s.container(i, wanted, depth, open)
	if end >= 0 {
		s.entries[at].end = int32(end)
		s.entries[at].skip = int32(len(s.entries))
	}
	return end
}

func (s *scanner) container(i int, wanted *trie, depth int, open byte) int {
	if open == '{' {
		if members := wanted.forObject(); members != nil {
			return s.object(i, members, depth)
		}
		return s.skipObject(i, depth)
	}
	elements := wanted.forElements()
	if elements == nil {
		return s.skipArray(i, depth)
	}
	return s.array(i, elements, depth)
}

func (s *scanner) object(i int, wanted *trie, depth int) int {
	raw := s.raw
	if i = skipSpace(raw, i+1); i < len(raw) && raw[i] == '}' {
		return i + 1
	}
	for {
		if i >= len(raw) || raw[i] != '"' {
			return s.fail(i, "expected a key")
		}
		keyStart := i + 1
		next, encoded := s.string(keyStart)
		if next < 0 {
			return -1
		}
		keyEnd := next - 1
		if i = skipSpace(raw, next); i >= len(raw) || raw[i] != ':' {
			return s.fail(i, "expected a colon after a key")
		}
		i = skipSpace(raw, i+1)
		child := wanted.member(raw[keyStart:keyEnd], encoded)
		at := len(s.entries)
		if i = s.value(i, child, depth+1); i < 0 {
			return -1
		}
		if child != nil {
			e := &s.entries[at]
			e.keyStart, e.keyEnd = int32(keyStart), int32(keyEnd)
			if encoded {
				e.flags |= encodedKey
			}
		}
		if i = skipSpace(raw, i); i >= len(raw) {
			return s.fail(i, "")
		}
		switch raw[i] {
		case ',':
			i = skipSpace(raw, i+1)
		case '}':
			return i + 1
		default:
			return s.fail(i, "expected a comma or a closing brace")
		}
	}
}

// skipObject scans an object of which nothing is wanted, as most of a document is: managed fields alone are half of many.
func (s *scanner) skipObject(i int, depth int) int {
	raw := s.raw
	if i = skipSpace(raw, i+1); i < len(raw) && raw[i] == '}' {
		return i + 1
	}
	for {
		if i >= len(raw) || raw[i] != '"' {
			return s.fail(i, "expected a key")
		}
		if i = s.skipString(i + 1); i < 0 {
			return -1
		}
		if i = skipSpace(raw, i); i >= len(raw) || raw[i] != ':' {
			return s.fail(i, "expected a colon after a key")
		}
		if i = skipSpace(raw, i+1); i < len(raw) && raw[i] == '"' {
			i = s.skipString(i + 1)
		} else {
			i = s.value(i, nil, depth+1)
		}
		if i < 0 {
			return -1
		}
		if i = skipSpace(raw, i); i >= len(raw) {
			return s.fail(i, "")
		}
		switch raw[i] {
		case ',':
			i = skipSpace(raw, i+1)
		case '}':
			return i + 1
		default:
			return s.fail(i, "expected a comma or a closing brace")
		}
	}
}

// array scans a list whose entry is the last one and records its elements.
func (s *scanner) array(i int, wanted *trie, depth int) int {
	at := len(s.entries) - 1
	raw := s.raw
	if i = skipSpace(raw, i+1); i < len(raw) && raw[i] == ']' {
		return i + 1
	}
	for n := int32(1); ; n++ {
		if i = s.value(i, wanted, depth+1); i < 0 {
			return -1
		}
		more := false
		if i, more = s.afterElement(i); !more {
			if i >= 0 {
				s.entries[at].elements = n
			}
			return i
		}
	}
}

// skipArray scans a list of which nothing is wanted.
func (s *scanner) skipArray(i int, depth int) int {
	raw := s.raw
	if i = skipSpace(raw, i+1); i < len(raw) && raw[i] == ']' {
		return i + 1
	}
	for more := true; more; {
		if i = s.value(i, nil, depth+1); i < 0 {
			return -1
		}
		i, more = s.afterElement(i)
	}
	return i
}

// afterElement reads the comma after an element, and then stands at the next, or the end of the list.
func (s *scanner) afterElement(i int) (next int, more bool) {
	i = skipSpace(s.raw, i)
	if i < len(s.raw) {
		switch s.raw[i] {
		case ',':
			return skipSpace(s.raw, i+1), true
		case ']':
			return i + 1, false
		}
	}
	return s.fail(i, "expected a comma or a closing bracket"), false
}

func (s *scanner) literal(i int, text string) int {
	if end := i + len(text); end <= len(s.raw) && string(s.raw[i:end]) == text {
		return end
	}
	return s.fail(i, "expected "+text)
}

// string scans a string from the byte after its opening quote and returns the offset after the
// closing one. encoded says that the bytes between the quotes are not yet the text.
func (s *scanner) string(i int) (end int, encoded bool) {
	raw, start, ascii := s.raw, i, true
	for {
		i = plainPrefix(raw, i)
		if i >= len(raw) {
			return s.fail(i, ""), false
		}
		switch c := raw[i]; {
		case c == '"':
			return i + 1, encoded || !ascii && !utf8.Valid(raw[start:i])
		case c == '\\':
			encoded = true
			if i = s.escape(i); i < 0 {
				return -1, false
			}
		case c < ' ':
			return s.fail(i, "a control character in a string"), false
		default:
			ascii = false
			for i < len(raw) && raw[i] >= utf8.RuneSelf {
				i++
			}
		}
	}
}

// skipString is string for one that is not wanted. Nearly all end within few words and have nothing special in them, so
// that case is done here, without a call.
func (s *scanner) skipString(i int) int {
	for i+8 <= len(s.raw) {
		found := special(binary.LittleEndian.Uint64(s.raw[i:]))
		if found == 0 {
			i += 8
			continue
		}
		if i += bits.TrailingZeros64(found) / 8; s.raw[i] == '"' {
			return i + 1
		}
		break
	}
	end, _ := s.string(i)
	return end
}

// escape checks the escape at i and returns the offset after it.
func (s *scanner) escape(i int) int {
	if i+1 >= len(s.raw) {
		return s.fail(i+1, "")
	}
	if s.raw[i+1] == 'u' {
		if _, ok := hex4(s.raw, i+2); !ok {
			return s.fail(min(i+2, len(s.raw)), "expected four hexadecimal digits")
		}
		return i + 6
	}
	if strings.IndexByte(`bfnrt\/"`, s.raw[i+1]) < 0 {
		return s.fail(i+1, "an unknown escape in a string")
	}
	return i + 2
}

const (
	everyByte = 0x0101010101010101
	highBits  = 0x8080808080808080
)

// special sets the high bit of the first byte of a word, in little endian, that is a quote, a backslash, a control
// character or not ASCII. What it sets above that means nothing.
func special(w uint64) uint64 {
	// A subtraction borrows into the high bit of the lowest byte that is too small; what it does
	// to the bytes above does not matter, since only the lowest set bit is used.
	quote := w ^ everyByte*'"'
	slash := w ^ everyByte*'\\'
	return (w | (w - everyByte*' ') | (quote - everyByte) | (slash - everyByte)) & highBits
}

// plainPrefix returns the offset of the first byte from i on that is a quote, a backslash, a
// control character or not ASCII. It looks at eight bytes at a time.
func plainPrefix(raw []byte, i int) int {
	for i+8 <= len(raw) {
		if found := special(binary.LittleEndian.Uint64(raw[i:])); found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
		i += 8
	}
	for i < len(raw) && raw[i] >= ' ' && raw[i] < utf8.RuneSelf && raw[i] != '"' && raw[i] != '\\' {
		i++
	}
	return i
}

// number scans the number at i. A number too large for a float64 fails, as it does in
// sigs.k8s.io/json.
func (s *scanner) number(i int) int {
	end, problem := scanNumber(s.raw, i)
	if problem != "" {
		return s.fail(end, problem)
	}
	// Only an exponent or hundreds of digits can exceed the range.
	if raw := s.raw[i:end]; len(raw) > 300 || hasExponent(raw) {
		if _, err := strconv.ParseFloat(string(raw), 64); err != nil {
			return s.fail(i, "the number is out of range")
		}
	}
	return end
}

func hasExponent(raw []byte) bool {
	for _, c := range raw {
		if c|0x20 == 'e' {
			return true
		}
	}
	return false
}

// scanNumber returns the offset after the JSON number at i, or the offset of the problem and what
// it is.
func scanNumber(raw []byte, i int) (end int, problem string) {
	if i < len(raw) && raw[i] == '-' {
		i++
	}
	switch {
	case i >= len(raw) || !isDigit(raw[i]):
		return i, "expected a value"
	case raw[i] == '0':
		i++
	default:
		i = skipDigits(raw, i)
	}
	if i < len(raw) && raw[i] == '.' {
		at := i + 1
		if i = skipDigits(raw, at); i == at {
			return i, "expected digits after the point"
		}
	}
	if i < len(raw) && raw[i]|0x20 == 'e' {
		at := i + 1
		if at < len(raw) && (raw[at] == '+' || raw[at] == '-') {
			at++
		}
		if i = skipDigits(raw, at); i == at {
			return i, "expected digits in the exponent"
		}
	}
	return i, ""
}

func skipDigits(raw []byte, i int) int {
	for i < len(raw) && isDigit(raw[i]) {
		i++
	}
	return i
}
