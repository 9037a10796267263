package jsonpath

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf8"
)

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
