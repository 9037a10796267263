package jsontext

import (
	"unicode/utf16"
	"unicode/utf8"
)

// unitLength is the length of an escape like \u00e9.
const unitLength = 6

// AppendText appends what the text between the quotes of a string stands for. Invalid UTF-8 and lone
// surrogates become U+FFFD. The text should have been read by Text; of any other nothing worse comes than
// other text.
func AppendText(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		if n := asciiPrefix(text, i); n > i {
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
			r, size := utf8.DecodeRune(text[i:]) // U+FFFD for a byte that is no part of a rune
			dst = utf8.AppendRune(dst, r)
			i += size
		}
	}
	return dst
}

// unescape reads the escape at i, both halves of a surrogate pair, which is not the last byte.
func unescape(text []byte, i int) (r rune, end int) {
	switch c := text[i+1]; c {
	case 'b':
		return '\b', i + 2
	case 'f':
		return '\f', i + 2
	case 'n':
		return '\n', i + 2
	case 'r':
		return '\r', i + 2
	case 't':
		return '\t', i + 2
	case 'u':
	default:
		return rune(c), i + 2
	}
	high, ok := CodeUnit(text, i+2)
	if !ok {
		return utf8.RuneError, i + 2
	}
	i += unitLength
	if !utf16.IsSurrogate(high) {
		return high, i
	}
	if i+1 < len(text) && text[i] == '\\' && text[i+1] == 'u' {
		if low, ok := CodeUnit(text, i+2); ok {
			if r := utf16.DecodeRune(high, low); r != utf8.RuneError {
				return r, i + unitLength
			}
		}
	}
	return utf8.RuneError, i
}

// CodeUnit returns the number that the four hexadecimal digits at i are.
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

// hexDigit is negative for what is not a hexadecimal digit.
func hexDigit(c byte) rune {
	switch {
	case c-'0' <= 9:
		return rune(c - '0')
	case (c|0x20)-'a' <= 5:
		return rune((c|0x20)-'a') + 10
	}
	return -1
}
