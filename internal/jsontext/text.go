package jsontext

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf8"
)

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// stringEndBits marks, in the top bit of each byte, which of eight bytes end or interrupt a string: quotes,
// backslashes and control characters. The lowest mark is exact; borrows can only affect higher ones.
func stringEndBits(w uint64) uint64 {
	quote, slash := w^lowBits*'"', w^lowBits*'\\'
	return ((w-lowBits*' ')&^w | (quote-lowBits)&^quote | (slash-lowBits)&^slash) & highBits
}

// stringEndOrNonASCIIBits is stringEndBits that also marks bytes that are not ASCII.
func stringEndOrNonASCIIBits(w uint64) uint64 {
	quote, slash := w^lowBits*'"', w^lowBits*'\\'
	return (w | (w - lowBits*' ') | (quote - lowBits) | (slash - lowBits)) & highBits
}

// ScanString reads a string, starting after its opening quote, including its closing quote. The common case
// without special bytes needs fewer instructions for eight bytes, and no call.
func ScanString(data []byte, i int) int {
	for i+8 <= len(data) {
		marks := stringEndOrNonASCIIBits(binary.LittleEndian.Uint64(data[i:]))
		if marks == 0 {
			i += 8
			continue
		}
		if i += bits.TrailingZeros64(marks) / 8; data[i] == '"' {
			return i + 1
		}
		break
	}
	return scanStringSlowly(data, i)
}

// scanStringSlowly works like ScanString for strings with special bytes, or near the end of the data.
func scanStringSlowly(data []byte, i int) int {
	for {
		for i+8 <= len(data) {
			if marks := stringEndBits(binary.LittleEndian.Uint64(data[i:])); marks != 0 {
				i += bits.TrailingZeros64(marks) / 8
				break
			}
			i += 8
		}
		for i < len(data) && data[i] != '"' && data[i] != '\\' && data[i] >= ' ' {
			i++
		}
		if i >= len(data) {
			return ^i
		}
		switch data[i] {
		case '"':
			return i + 1
		case '\\':
			if i = scanEscape(data, i); i < 0 {
				return i
			}
		default:
			return ^i
		}
	}
}

// ScanAnyString is ScanString that also reports whether the string has escapes or invalid UTF-8, so that
// AppendUnescaped has to convert it.
func ScanAnyString(data []byte, i int) (end int, needsUnescape bool) {
	start, ascii := i, true
	for {
		if i = asciiPrefixEnd(data, i); i >= len(data) {
			return ^i, false
		}
		switch c := data[i]; {
		case c == '"':
			return i + 1, needsUnescape || !ascii && !utf8.Valid(data[start:i])
		case c == '\\':
			needsUnescape = true
			if i = scanEscape(data, i); i < 0 {
				return i, false
			}
		case c < ' ':
			return ^i, false
		default:
			ascii = false
			for i < len(data) && data[i] >= utf8.RuneSelf {
				i++
			}
		}
	}
}

// ScanPlain works like ScanString for ASCII strings without escapes; it returns false for others.
func ScanPlain(data []byte, i int) (end int, ok bool) {
	i = asciiPrefixEnd(data, i)
	return i + 1, i < len(data) && data[i] == '"'
}

// CopyPlainText copies the content of a string, starting after its opening quote, to dst, and returns its
// length. It returns false for strings with escapes or other characters than ASCII, that do not fit, or near
// the end of the data. It may overwrite dst beyond the text.
func CopyPlainText(dst, data []byte, i int) (n int, ok bool) {
	for n+8 <= len(dst) && i+8 <= len(data) {
		word := binary.LittleEndian.Uint64(data[i:])
		binary.LittleEndian.PutUint64(dst[n:], word)
		if marks := stringEndOrNonASCIIBits(word); marks != 0 {
			k := bits.TrailingZeros64(marks) / 8
			return n + k, data[i+k] == '"'
		}
		n += 8
		i += 8
	}
	return 0, false
}

// asciiPrefixEnd returns the offset of the first byte at or after i that is a quote, a backslash, a control
// character or not ASCII.
func asciiPrefixEnd(data []byte, i int) int {
	for i+8 <= len(data) {
		if marks := stringEndOrNonASCIIBits(binary.LittleEndian.Uint64(data[i:])); marks != 0 {
			return i + bits.TrailingZeros64(marks)/8
		}
		i += 8
	}
	for i < len(data) && data[i] >= ' ' && data[i] < utf8.RuneSelf && data[i] != '"' && data[i] != '\\' {
		i++
	}
	return i
}

func scanEscape(data []byte, i int) int {
	if i+1 >= len(data) {
		return ^(i + 1)
	}
	if data[i+1] != 'u' {
		if strings.IndexByte(`"\/bfnrt`, data[i+1]) < 0 {
			return ^(i + 1)
		}
		return i + 2
	}
	for k := i + 2; k < i+unicodeEscapeLength; k++ {
		if k >= len(data) || hexDigit(data[k]) < 0 {
			return ^k
		}
	}
	return i + unicodeEscapeLength
}

// StringProblem describes why ScanString or ScanAnyString returned ^at.
func StringProblem(data []byte, at int) string {
	switch {
	case at >= len(data):
		return "the end of the data in a string"
	case data[at] < ' ':
		return "a control character in a string"
	case data[at-1] == '\\':
		return "an unknown escape in a string"
	default:
		return "not four hexadecimal digits in an escape"
	}
}

// SkipProblem describes why Skip returned ^at.
func SkipProblem(data []byte, at int) string {
	if at >= len(data) {
		return "unexpected end"
	}
	if end, numberForm := ScanNumber(data, at); end >= 0 && !IsFloat64(data[at:end], numberForm) {
		return "a number out of range"
	}
	return "an unexpected character"
}
