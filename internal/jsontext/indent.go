package jsontext

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// AppendIndented appends the JSON in data, formatted like json.MarshalIndent formats the result of Decoder.
// It returns dst and false if that requires decoding: for invalid JSON, and for objects with unsorted or
// duplicate keys.
func AppendIndented(dst, data []byte, prefix, indent string) ([]byte, bool) {
	w := indenter{data: data, out: dst, linePrefix: "\n" + prefix, indent: indent}
	if end := w.value(SkipSpace(data, 0)); end < 0 || SkipSpace(data, end) != len(data) {
		return dst, false
	}
	return w.out, true
}

// AppendCanonical is AppendIndented without white space, like json.Marshal.
func AppendCanonical(dst, data []byte) ([]byte, bool) {
	w := indenter{data: data, out: dst, compact: true}
	if end := w.value(SkipSpace(data, 0)); end < 0 || SkipSpace(data, end) != len(data) {
		return dst, false
	}
	return w.out, true
}

// maxIndentDepth is the nesting depth at which a value is left to a decoder. API servers accept far less.
const maxIndentDepth = 1000

// indenter formats data into out. Its methods return the offset after the value, or a negative number.
type indenter struct {
	data, out          []byte
	linePrefix, indent string // linePrefix begins each line
	compact            bool   // without white space
	depth              int
	text               []byte // scratch
}

func (w *indenter) newLine() {
	if w.compact {
		return
	}
	w.out = append(w.out, w.linePrefix...)
	for range w.depth {
		w.out = append(w.out, w.indent...)
	}
}

func (w *indenter) value(i int) int {
	if i < 0 || i >= len(w.data) {
		return -1
	}
	switch w.data[i] {
	case '{':
		return w.container(i, '}')
	case '[':
		return w.container(i, ']')
	case '"':
		end, _ := w.string(i)
		return end
	case 't':
		return w.literal(i, "true")
	case 'f':
		return w.literal(i, "false")
	case 'n':
		return w.literal(i, "null")
	}
	return w.number(i)
}

// container formats the object or array at i.
func (w *indenter) container(i int, closing byte) int {
	if w.depth == maxIndentDepth {
		return -1
	}
	w.out = append(w.out, w.data[i])
	i, closed := EnterContainer(w.data, i)
	if closed {
		w.out = append(w.out, closing)
		return i
	}
	w.depth++
	var last []byte
	for first := true; !closed; first = false {
		if !first {
			w.out = append(w.out, ',')
		}
		w.newLine()
		if closing == '}' {
			key, end := w.key(i)
			if end < 0 || !first && bytes.Compare(key, last) <= 0 {
				return -1
			}
			i, last = end, key
		}
		if i = w.value(i); i < 0 {
			return -1
		}
		if i, closed = NextMember(w.data, i, closing); i < 0 {
			return -1
		}
	}
	w.depth--
	w.newLine()
	w.out = append(w.out, closing)
	return i
}

// key formats the key at i and a colon. It returns the unescaped key and the offset of the value.
func (w *indenter) key(i int) (key []byte, value int) {
	if i >= len(w.data) || w.data[i] != '"' {
		return nil, ^i
	}
	end, encoded := w.string(i)
	if end < 0 {
		return nil, end
	}
	key = w.data[i+1 : end-1]
	if encoded {
		key = AppendUnescaped(nil, key)
	}
	if w.out = append(w.out, ':'); !w.compact {
		w.out = append(w.out, ' ')
	}
	return key, SkipColon(w.data, end)
}

// string formats the string at i. It returns its end and whether it has escapes or invalid UTF-8.
func (w *indenter) string(i int) (end int, encoded bool) {
	if end = plainPrefix(w.data, i+1); end < len(w.data) && w.data[end] == '"' {
		w.out = append(w.out, w.data[i:end+1]...)
		return end + 1, false
	}
	if end, encoded = ScanEncoded(w.data, i+1); end < 0 {
		return end, false
	}
	text := w.data[i+1 : end-1]
	if encoded {
		w.text = AppendUnescaped(w.text[:0], text)
		text = w.text
	}
	w.out = appendQuoted(w.out, text)
	return end, encoded
}

func (w *indenter) literal(i int, literal string) int {
	w.out = append(w.out, literal...)
	return ScanLiteral(w.data, i, literal)
}

func (w *indenter) number(i int) int {
	end, _ := ScanNumber(w.data, i)
	if end < 0 {
		return end
	}
	integer, float, isInteger, ok := ParseNumber(w.data[i:end])
	switch {
	case !ok:
		return -1
	case isInteger:
		w.out = strconv.AppendInt(w.out, integer, 10)
	default:
		text, _ := json.Marshal(float) // it is finite
		w.out = append(w.out, text...)
	}
	return end
}

// appendQuoted appends a string of valid UTF-8 like encoding/json, with HTML characters escaped.
func appendQuoted(dst, text []byte) []byte {
	const short, letters, hex = "\b\f\n\r\t", "bfnrt", "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(text); {
		n := plainPrefix(text, i)
		dst = append(dst, text[i:n]...)
		if i = n; i == len(text) {
			break
		}
		c := text[i]
		switch k := strings.IndexByte(short, c); {
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRune(text[i:])
			if r == '\u2028' || r == '\u2029' {
				dst = append(append(dst, `\u202`...), hex[r&15])
			} else {
				dst = append(dst, text[i:i+size]...)
			}
			i += size - 1
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case k >= 0:
			dst = append(dst, '\\', letters[k])
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
	}
	return append(dst, '"')
}

// plainPrefix returns the offset of the first byte at or after i that encoding/json may escape, or that is
// not ASCII.
func plainPrefix(data []byte, i int) int {
	for i+8 <= len(data) {
		word := binary.LittleEndian.Uint64(data[i:])
		// < and > differ in one bit
		bracket, ampersand := word&^(lowBits*2)^lowBits*'<', word^lowBits*'&'
		marks := stringEndOrNonASCIIBits(word) | ((bracket-lowBits)|(ampersand-lowBits))&highBits
		if marks != 0 {
			return i + bits.TrailingZeros64(marks)/8
		}
		i += 8
	}
	for i < len(data) && unescaped[data[i]] {
		i++
	}
	return i
}

// unescaped are the ASCII characters that encoding/json does not escape.
var unescaped = func() (table [256]bool) {
	for c := range byte(utf8.RuneSelf) {
		table[c] = c >= ' ' && !slices.Contains([]byte(`"\<>&`), c)
	}
	return table
}()
