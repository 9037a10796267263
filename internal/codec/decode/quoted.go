package decode

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// special marks, with the top bit of a byte, which of eight bytes do not stand for themselves in a string:
// control characters, quotes, backslashes, and all that is not ASCII. A borrow can mark a byte
// wrongly, but only above one that is marked rightly: the lowest mark is good.
func special(word uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	quote, backslash := word^ones*'"', word^ones*'\\'
	return ((word-ones*' ')&^word | (quote-ones)&^quote | (backslash-ones)&^backslash | word) & tops
}

// quoted reads the string at pos. The result is good until the next call and may be part of the data.
func (p *parser) quoted() []byte {
	p.pos++
	rest := p.data[p.pos:]
	ascii := true
	for i := 0; i < len(rest); i++ {
		for i+8 <= len(rest) {
			if marks := special(binary.LittleEndian.Uint64(rest[i:])); marks != 0 {
				i += bits.TrailingZeros64(marks) / 8
				break
			}
			i += 8
		}
		if i == len(rest) {
			break
		}
		switch c := rest[i]; {
		case c == '"':
			if !ascii && !utf8.Valid(rest[:i]) {
				return p.unescape()
			}
			p.pos += i + 1
			return rest[:i]
		case c >= utf8.RuneSelf:
			ascii = false
		case c == '\\' || c < ' ':
			return p.unescape()
		}
	}
	p.pos = len(p.data)
	p.fail("the end of the data in a string")
	return nil
}

// unescape reads the string whose text begins at pos, replacing escapes and invalid UTF-8.
func (p *parser) unescape() []byte {
	p.text = p.text[:0]
	for p.pos < len(p.data) {
		c := p.data[p.pos]
		switch {
		case c == '"':
			p.pos++
			return p.text
		case c == '\\':
			if !p.escape() {
				return nil
			}
		case c < ' ':
			p.fail("a control character in a string")
			return nil
		case c < utf8.RuneSelf:
			p.text = append(p.text, c)
			p.pos++
		default:
			r, size := utf8.DecodeRune(p.data[p.pos:])
			p.text = utf8.AppendRune(p.text, r) // U+FFFD for a byte that is no part of a rune
			p.pos += size
		}
	}
	p.fail("the end of the data in a string")
	return nil
}

// escapes are the characters that one-letter escapes stand for.
var escapes = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// escape reads the escape at pos, both halves of a surrogate pair, and appends what it stands for to p.text.
func (p *parser) escape() bool {
	if p.pos+1 >= len(p.data) {
		p.fail("the end of the data in a string")
		return false
	}
	c := p.data[p.pos+1]
	if plain := escapes[c]; plain != 0 {
		p.text = append(p.text, plain)
		p.pos += 2
		return true
	}
	r := codeUnit(p.data[p.pos:])
	if r < 0 {
		p.fail("an unknown escape in a string")
		return false
	}
	p.pos += unitLength
	if utf16.IsSurrogate(r) {
		pair := utf16.DecodeRune(r, codeUnit(p.data[p.pos:]))
		if pair != utf8.RuneError {
			p.pos += unitLength
		}
		r = pair
	}
	p.text = utf8.AppendRune(p.text, r)
	return true
}

// unitLength is the length of an escape like \u00e9.
const unitLength = 6

// codeUnit returns the number of the \u escape that data begins with, or -1 where there is none.
func codeUnit(data []byte) rune {
	if len(data) < unitLength || data[0] != '\\' || data[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range data[2:unitLength] {
		digit := hexDigit(c)
		if digit < 0 {
			return -1
		}
		r = r<<4 | digit
	}
	return r
}

func hexDigit(c byte) rune {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0')
	case 'a' <= c && c <= 'f':
		return rune(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return rune(c-'A') + 10
	}
	return -1
}
