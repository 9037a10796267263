package jsonpath

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// parser parses one expression. All positions are byte offsets in src.
type parser struct {
	src      string
	pos      int
	depth    int  // open parentheses, filters and negations
	rooted   bool // the path begins with $
	warnings []Diagnostic
}

// fail returns an error about the bytes [from, to) of the expression.
func (p *parser) fail(code Code, from, to int, hint, format string, args ...any) error {
	return &Error{Diagnostic{
		Code: code, Message: fmt.Sprintf(format, args...), Hint: hint,
		Expr: p.src, Offset: from, Length: max(to-from, 0),
	}}
}

func (p *parser) warn(code Code, from, to int, hint, format string, args ...any) {
	p.warnings = append(p.warnings, Diagnostic{
		Code: code, Message: fmt.Sprintf(format, args...), Hint: hint,
		Expr: p.src, Offset: from, Length: to - from,
	})
}

// peek returns the byte at pos, or 0 at the end. A NUL in the expression also looks like the end, but then
// fails as unexpected because pos is not at the end.
func (p *parser) peek() byte { return p.peekAt(0) }

func (p *parser) peekAt(n int) byte {
	if p.pos+n >= len(p.src) {
		return 0
	}
	return p.src[p.pos+n]
}

func (p *parser) atEnd() bool { return p.pos >= len(p.src) }

func (p *parser) hasPrefix(prefix string) bool { return strings.HasPrefix(p.src[p.pos:], prefix) }

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func (p *parser) skipBlanks() {
	for !p.atEnd() && isBlank(p.src[p.pos]) {
		p.pos++
	}
}

// currentChar formats the character at pos for messages, or "the end".
func (p *parser) currentChar() string {
	if p.atEnd() {
		return "the end"
	}
	r, _ := utf8.DecodeRuneInString(p.src[p.pos:])
	if r == '"' {
		return `'"'`
	}
	return fmt.Sprintf("%q", string(r))
}

// charEnd returns the offset after the character at pos.
func (p *parser) charEnd() int {
	_, size := utf8.DecodeRuneInString(p.src[p.pos:])
	return p.pos + size
}

// enterNesting counts a level of nesting. The caller must leave.
func (p *parser) enterNesting() error {
	p.depth++
	if p.depth > maxNesting {
		return p.fail(CodeLimit, p.pos, p.charEnd(), "",
			"filters and parentheses are nested more than %d deep", maxNesting)
	}
	return nil
}

func (p *parser) leaveNesting() { p.depth-- }

// checkInput rejects expressions that are too long, empty or not UTF-8.
func (p *parser) checkInput() error {
	if len(p.src) > maxExprBytes {
		return p.fail(CodeLimit, maxExprBytes, maxExprBytes, "",
			"the expression is %d bytes long; at most %d are allowed", len(p.src), maxExprBytes)
	}
	for i, r := range p.src {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(p.src[i:]); size == 1 {
				return p.fail(CodeInvalidUTF8, i, i+1, "", "the byte 0x%02x is not valid UTF-8", p.src[i])
			}
		}
	}
	p.skipBlanks()
	if p.atEnd() {
		return p.fail(CodeEmpty, 0, 0, `write "$" for the whole object`, "the expression is empty")
	}
	return nil
}

// peekWord returns the letters at pos.
func (p *parser) peekWord() string {
	i := p.pos
	for i < len(p.src) && isLetter(p.src[i]) {
		i++
	}
	return p.src[p.pos:i]
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
