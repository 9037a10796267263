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
// It returns dst and false if that requires decoding: for invalid JSON, and unsorted or duplicate keys.
func AppendIndented(dst, data []byte, prefix, indent string) ([]byte, bool) {
	w := indenter{data: data, out: dst, linePrefix: "\n" + prefix, indent: indent}
	if end := w.writeValue(SkipSpace(data, 0)); end < 0 || SkipSpace(data, end) != len(data) {
		return dst, false
	}
	return w.out, true
}

// AppendCanonical is AppendIndented without white space, like json.Marshal.
func AppendCanonical(dst, data []byte) ([]byte, bool) {
	w := indenter{data: data, out: dst, compact: true}
	if end := w.writeValue(SkipSpace(data, 0)); end < 0 || SkipSpace(data, end) != len(data) {
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
	unescapeBuffer     []byte // scratch
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

func (w *indenter) writeValue(i int) int {
	if i < 0 || i >= len(w.data) {
		return -1
	}
	switch w.data[i] {
	case '{':
		return w.writeContainer(i, '}')
	case '[':
		return w.writeContainer(i, ']')
	case '"':
		end, _ := w.writeString(i)
		return end
	case 't':
		return w.writeLiteral(i, "true")
	case 'f':
		return w.writeLiteral(i, "false")
	case 'n':
		return w.writeLiteral(i, "null")
	}
	return w.writeNumber(i)
}

// writeContainer formats the object or array at i.
func (w *indenter) writeContainer(i int, closing byte) int {
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
	var previousKey []byte
	for first := true; !closed; first = false {
		if !first {
			w.out = append(w.out, ',')
		}
		w.newLine()
		if closing == '}' {
			key, end := w.writeKey(i)
			if end < 0 || !first && bytes.Compare(key, previousKey) <= 0 {
				return -1
			}
			i, previousKey = end, key
		}
		if i = w.writeValue(i); i < 0 {
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

// writeKey formats the key at i and a colon. It returns the unescaped key and the offset of the value.
func (w *indenter) writeKey(i int) (writeKey []byte, value int) {
	if i >= len(w.data) || w.data[i] != '"' {
		return nil, ^i
	}
	end, encoded := w.writeString(i)
	if end < 0 {
		return nil, end
	}
	writeKey = w.data[i+1 : end-1]
	if encoded {
		writeKey = AppendUnescaped(nil, writeKey)
	}
	if w.out = append(w.out, ':'); !w.compact {
		w.out = append(w.out, ' ')
	}
	return writeKey, SkipColon(w.data, end)
}

// writeString formats the string at i. It returns its end and whether it has escapes or invalid UTF-8.
func (w *indenter) writeString(i int) (end int, encoded bool) {
	if end = unescapedPrefixEnd(w.data, i+1); end < len(w.data) && w.data[end] == '"' {
		w.out = append(w.out, w.data[i:end+1]...)
		return end + 1, false
	}
	if end, encoded = ScanAnyString(w.data, i+1); end < 0 {
		return end, false
	}
	text := w.data[i+1 : end-1]
	if encoded {
		w.unescapeBuffer = AppendUnescaped(w.unescapeBuffer[:0], text)
		text = w.unescapeBuffer
	}
	w.out = appendQuoted(w.out, text)
	return end, encoded
}

func (w *indenter) writeLiteral(i int, writeLiteral string) int {
	w.out = append(w.out, writeLiteral...)
	return ScanLiteral(w.data, i, writeLiteral)
}

func (w *indenter) writeNumber(i int) int {
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
		n := unescapedPrefixEnd(text, i)
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

// unescapedPrefixEnd returns the offset of the first byte from i on that may be escaped or is not ASCII.
func unescapedPrefixEnd(data []byte, i int) int {
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
	for i < len(data) && needsNoEscape[data[i]] {
		i++
	}
	return i
}

// needsNoEscape are the ASCII characters that encoding/json does not escape.
var needsNoEscape = func() (table [256]bool) {
	for c := range byte(utf8.RuneSelf) {
		table[c] = c >= ' ' && !slices.Contains([]byte(`"\<>&`), c)
	}
	return table
}()
