package jsonpath

import (
	"unicode/utf16"
	"unicode/utf8"
)

// unquoted gives the text of a JSON string with its quotes. It allocates only for an encoded one.
func unquoted(raw []byte, encoded bool) []byte {
	if len(raw) < 2 {
		return []byte{}
	}
	text := raw[1 : len(raw)-1 : len(raw)-1]
	if encoded {
		return appendUnquoted(nil, text)
	}
	return text
}

// appendUnquoted appends the decoded text between the quotes of a JSON string. Broken UTF-8 and
// lone surrogates become U+FFFD, as in sigs.k8s.io/json. The text is valid, but it may have been
// overwritten since the scan, so nothing may go wrong for any other bytes.
func appendUnquoted(dst, text []byte) []byte {
	if dst == nil {
		dst = make([]byte, 0, len(text))
	}
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text):
			var r rune
			r, i = unescape(text, i)
			dst = utf8.AppendRune(dst, r)
		case c < utf8.RuneSelf:
			dst = append(dst, c)
			i++
		default:
			r, size := utf8.DecodeRune(text[i:])
			dst = utf8.AppendRune(dst, r)
			i += size
		}
	}
	return dst
}

// unescape reads the escape at i, which is not the last byte, and returns the offset after it.
func unescape(text []byte, i int) (rune, int) {
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
	high, ok := hex4(text, i+2)
	if !ok {
		return utf8.RuneError, i + 2
	}
	i += 6
	if !utf16.IsSurrogate(high) {
		return high, i
	}
	if i+1 < len(text) && text[i] == '\\' && text[i+1] == 'u' {
		if low, ok := hex4(text, i+2); ok {
			if r := utf16.DecodeRune(high, low); r != utf8.RuneError {
				return r, i + 6
			}
		}
	}
	return utf8.RuneError, i
}
