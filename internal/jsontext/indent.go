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
// It returns dst and false if that requires decoding: for invalid JSON, and duplicate keys.
func AppendIndented(dst, data []byte, prefix, indent string) ([]byte, bool) {
	w := indenter{data: data, out: dst, linePrefix: "\n" + prefix, indent: indent}
	if end := w.writeValue(SkipSpace(data, 0)); end < 0 || SkipSpace(data, end) != len(data) {
		return dst, false
	}
	return w.out, true
}

// Canonicalizer writes JSON without white space and with sorted keys, like json.Marshal. It must not be used
// concurrently.
type Canonicalizer struct{ writer indenter }

// Append appends the value at data[start:], and returns the offset after it. It returns dst and a negative
// offset for duplicate keys, and for invalid or very deeply nested JSON. truncated reports that data ends too
// early.
func (c *Canonicalizer) Append(dst, data []byte, start int) (canonical []byte, end int, truncated bool) {
	w := &c.writer
	*w = indenter{data: data, out: dst, compact: true, members: w.members[:0], scratch: w.scratch,
		sorted: w.sorted}
	end = w.writeValue(start)
	canonical, w.data, w.out = w.out, nil, nil
	if end < 0 {
		return dst, end, ^end >= len(data)
	}
	return canonical, end, false
}

// maxIndentDepth is the nesting depth at which a value is left to a decoder. API servers accept far less.
const maxIndentDepth = 1000

// indenter formats data into out. Its methods return the offset after the value, or the complement (^) of the
// offset of an error.
type indenter struct {
	data, out          []byte
	linePrefix, indent string // linePrefix begins each line
	compact            bool   // without white space
	depth              int
	members            []int  // offsets in out of the members of the open objects
	scratch            []byte // an unescaped key, or the members of an object
	sorted             []keyedText
}

// keyedText is a field in scratch.
type keyedText struct{ key, text []byte }

func (w *indenter) appendLine(dst []byte, depth int) []byte {
	if w.compact {
		return dst
	}
	dst = append(dst, w.linePrefix...)
	for range depth {
		dst = append(dst, w.indent...)
	}
	return dst
}

func (w *indenter) writeValue(i int) int {
	switch {
	case i < 0:
		return i
	case i >= len(w.data):
		return ^i
	}
	switch w.data[i] {
	case '{':
		return w.writeObject(i)
	case '[':
		i, closed := w.open(i, ']')
		for !closed {
			i, closed = w.next(w.writeValue(i), ']')
		}
		return i
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

// open writes the bracket at i, and closing for an empty object or array.
func (w *indenter) open(i int, closing byte) (next int, closed bool) {
	if w.depth == maxIndentDepth {
		return ^i, true
	}
	w.out = append(w.out, w.data[i])
	i, closed = EnterContainer(w.data, i)
	if closed {
		w.out = append(w.out, closing)
		return i, true
	}
	w.depth++
	w.out = w.appendLine(w.out, w.depth)
	return i, false
}

// next consumes the comma or closing bracket at i and writes it.
func (w *indenter) next(i int, closing byte) (next int, closed bool) {
	if i < 0 {
		return i, true
	}
	i, closed = NextMember(w.data, i, closing)
	switch {
	case i < 0:
		return i, true
	case closed:
		w.depth--
		w.out = w.appendLine(w.out, w.depth)
		w.out = append(w.out, closing)
	default:
		w.out = append(w.out, ',')
		w.out = w.appendLine(w.out, w.depth)
	}
	return i, closed
}

func (w *indenter) writeObject(i int) int {
	start := i
	i, closed := w.open(i, '}')
	if closed {
		return i
	}
	first, end, isSorted := len(w.members), 0, true
	var previousKey []byte
	for !closed {
		w.members = append(w.members, len(w.out))
		key, value := w.writeKey(i)
		isSorted = isSorted && (len(w.members) == first+1 || bytes.Compare(key, previousKey) > 0)
		previousKey = key
		i, end = w.writeValue(value), len(w.out)
		i, closed = w.next(i, '}')
	}
	if i >= 0 && !isSorted && !w.sort(w.members[first:], end) {
		i = ^start
	}
	w.members = w.members[:first]
	return i
}

// sort sorts the members of the object that was just written, the last of which ends at end. It returns false
// for duplicate keys.
func (w *indenter) sort(members []int, end int) bool {
	start := members[0]
	w.sorted = w.sorted[:0]
	separator := w.appendLine([]byte{','}, w.depth+1)
	w.scratch = append(w.scratch[:0], w.out[start:end]...)
	for i := range members {
		textEnd := end
		if i+1 < len(members) {
			textEnd = members[i+1] - len(separator)
		}
		text := w.scratch[members[i]-start : textEnd-start]
		keyEnd, encoded := ScanAnyString(text, 1)
		key := text[1 : keyEnd-1]
		if encoded {
			key = AppendUnescaped(nil, key)
		}
		w.sorted = append(w.sorted, keyedText{key, text})
	}
	slices.SortFunc(w.sorted, func(a, b keyedText) int { return bytes.Compare(a.key, b.key) })
	out := w.out[:start]
	for i, m := range w.sorted {
		if i > 0 {
			if bytes.Equal(m.key, w.sorted[i-1].key) {
				return false
			}
			out = append(out, separator...)
		}
		out = append(out, m.text...)
	}
	return true
}

// writeKey formats the key at i and a colon. It returns the unescaped key and the offset of the value.
func (w *indenter) writeKey(i int) (key []byte, value int) {
	if i >= len(w.data) || w.data[i] != '"' {
		return nil, ^i
	}
	end, encoded := w.writeString(i)
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
	if end+1 < len(w.data) && w.data[end] == ':' && w.data[end+1] > ' ' {
		return key, end + 1
	}
	return key, SkipColon(w.data, end)
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
		w.scratch = AppendUnescaped(w.scratch[:0], text)
		text = w.scratch
	}
	w.out = appendQuoted(w.out, text)
	return end, encoded
}

func (w *indenter) writeLiteral(i int, word string) int {
	w.out = append(w.out, word...)
	return ScanLiteral(w.data, i, word)
}

func (w *indenter) writeNumber(i int) int {
	end, _ := ScanNumber(w.data, i)
	if end < 0 {
		return end
	}
	integer, float, isInteger, ok := ParseNumber(w.data[i:end])
	switch {
	case !ok:
		return ^i
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

// Compact returns a value as JSON in one line without escapes for HTML, or "?" if it has no form in JSON.
func Compact(value any) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "?"
	}
	return strings.TrimSuffix(text.String(), "\n")
}
