package jsontext

import (
	"cmp"
	"unicode/utf16"
	"unicode/utf8"
)

// unicodeEscapeLength is the length of an escape like \u00e9.
const unicodeEscapeLength = 6

// AppendUnescaped appends the unescaped content of a string. Invalid UTF-8 and lone surrogates become U+FFFD.
// The result is unspecified for a text that ScanString has not validated.
func AppendUnescaped(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		if n := asciiPrefixEnd(text, i); n > i {
			dst = append(dst, text[i:n]...)
			i = n
			continue
		}
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			var r rune
			r, i = unescape(text, i)
			dst = utf8.AppendRune(dst, r)
		case c < utf8.RuneSelf:
			dst = append(dst, c)
			i++
		default:
			r, size := utf8.DecodeRune(text[i:]) // U+FFFD for an invalid byte
			dst = utf8.AppendRune(dst, r)
			i += size
		}
	}
	return dst
}

// controlEscapes are the control characters with an escape of one letter, by that letter.
var controlEscapes = [256]rune{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape reads the escape at i, including both halves of a surrogate pair. The escape is not the last byte.
func unescape(text []byte, i int) (r rune, end int) {
	if c := text[i+1]; c != 'u' {
		return cmp.Or(controlEscapes[c], rune(c)), i + 2
	}
	high, ok := CodeUnit(text, i+2)
	if !ok {
		return utf8.RuneError, i + 2
	}
	i += unicodeEscapeLength
	if !utf16.IsSurrogate(high) {
		return high, i
	}
	if i+1 < len(text) && text[i] == '\\' && text[i+1] == 'u' {
		if low, ok := CodeUnit(text, i+2); ok {
			if r := utf16.DecodeRune(high, low); r != utf8.RuneError {
				return r, i + unicodeEscapeLength
			}
		}
	}
	return utf8.RuneError, i
}

// CodeUnit returns the value of the four hexadecimal digits at i.
func CodeUnit[T string | []byte](text T, i int) (unit rune, ok bool) {
	if i+4 > len(text) {
		return 0, false
	}
	for k := i; k < i+4; k++ {
		digit := hexDigit(text[k])
		if digit < 0 {
			return 0, false
		}
		unit = unit<<4 | digit
	}
	return unit, true
}

// hexDigit returns a negative number if c is not a hexadecimal digit.
func hexDigit(c byte) rune {
	switch {
	case c-'0' <= 9:
		return rune(c - '0')
	case (c|0x20)-'a' <= 5:
		return rune((c|0x20)-'a') + 10
	}
	return -1
}
