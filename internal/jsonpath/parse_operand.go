package jsonpath

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// parseOperand parses a path or a literal in a filter.
func (p *parser) parseOperand() (operand, error) {
	p.skipBlanks()
	from := p.pos
	switch c := p.peek(); {
	case p.atEnd() || c == ')' || c == ']':
		return operand{}, p.fail(CodeOperand, from, from, `write a path such as @.name, or a literal`,
			"a value is missing before %s", p.currentChar())
	case c == '.' && isDigit(p.peekAt(1)):
		return operand{}, p.fail(CodeNumber, from, from+2, `write 0.5, or @.5 for a key`,
			"a number cannot start with a point")
	case c == '@' || c == '.':
		return p.parseRelative()
	case c == '$':
		return operand{}, p.fail(CodeRootInFilter, from, from+1, `start the path with "@"`,
			`"$" is not available in a filter`)
	case c == '"' || c == '\'':
		s, err := p.parseString(literalString)
		return operand{literal: scalar{kind: KindString, text: s}}, err
	case c == '-' || c == '+' || isDigit(c):
		return p.parseNumber()
	case isLetter(c) || c == '_' || c >= utf8.RuneSelf:
		return p.parseWord()
	case c == '[' || c == '*':
		return operand{}, p.fail(CodeOperand, from, from+1, `start the path with "@"`,
			"a value cannot start with %s", p.currentChar())
	}
	if op, found, err := p.parseOperator(); found || err != nil {
		return operand{}, p.fail(CodeOperand, from, max(p.pos, from+1), "", `%q needs a value on its left`,
			compareOps[op])
	}
	return operand{}, p.fail(CodeOperand, from, p.charEnd(), "", "a value cannot start with %s", p.currentChar())
}

// parseRelative parses a path relative to the tested value. As in kubectl, "@" is optional.
func (p *parser) parseRelative() (operand, error) {
	from := p.pos
	if p.peek() == '@' {
		p.pos++
		if !p.atEnd() && canStartName(p.peek()) {
			return operand{}, p.fail(CodeUnexpected, p.pos, p.charEnd(), `write "@."`,
				`%s directly after "@"`, p.currentChar())
		}
	}
	steps, err := p.parseSteps(nil)
	if err != nil {
		return operand{}, err
	}
	if p.peek() == '(' && len(steps) > 0 {
		return operand{}, p.fail(CodeFunction, from, p.pos, "", "functions are not supported")
	}
	return operand{isPath: true, steps: steps}, nil
}

func (p *parser) parseWord() (operand, error) {
	from := p.pos
	for !p.atEnd() && (isLetter(p.peek()) || isDigit(p.peek()) || p.peek() == '_' || p.peek() == '-' ||
		p.peek() >= utf8.RuneSelf) {
		p.pos++
	}
	word := p.src[from:p.pos]
	if p.peek() == '(' {
		return operand{}, p.fail(CodeFunction, from, p.pos, "",
			"functions such as %s() are not supported", word)
	}
	unquotedWord := strings.Trim(word, typographicQuotes)
	hint := `quote a string as "` + unquotedWord + `", start a path as @.` + unquotedWord
	switch word {
	case "true", "false":
		return operand{literal: scalar{kind: KindBool, boolean: word == "true"}}, nil
	case "null":
		return operand{literal: scalar{kind: KindNull}}, nil
	case "nil", "None", "NULL", "Null", "undefined":
		hint = "write null"
	case "True", "TRUE", "False", "FALSE":
		hint = "write " + strings.ToLower(word) + `, or "` + word + `" for the string`
	case "not":
		hint = `use "!"`
	}
	return operand{}, p.fail(CodeOperand, from, p.pos, hint, "%s is neither a path nor a literal", word)
}

// parseNumber parses a JSON number, with an optional leading "+" as in kubectl.
func (p *parser) parseNumber() (operand, error) {
	from := p.pos
	for !p.atEnd() {
		c := p.peek()
		isSign := (c == '-' || c == '+') && (p.pos == from || p.src[p.pos-1]|0x20 == 'e')
		if !isSign && c != '.' && !isDigit(c) && !isLetter(c) {
			break
		}
		p.pos++
	}
	text := p.src[from:p.pos]
	digits := strings.TrimPrefix(text, "+")
	if end, _ := jsontext.ScanNumber([]byte(digits), 0); end != len(digits) {
		return operand{}, p.fail(CodeNumber, from, p.pos, "write it as in JSON, for example -1, 2.5 or 1e3",
			"%s is not a number", text)
	}
	if !strings.Contains(digits, ".") {
		if i, err := strconv.ParseInt(digits, 10, 64); err == nil {
			return operand{literal: scalar{kind: KindNumber, isInt: true, integer: i}}, nil
		}
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return operand{}, p.fail(CodeNumber, from, p.pos, "", "%s is out of range", text)
	}
	return operand{literal: scalar{kind: KindNumber, float: f}}, nil
}

// kinds of quoted strings in messages
const (
	literalString = "a string"
	quotedKey     = "a quoted key"
)

// parseString parses a quoted string with JSON escapes. Single and double quotes can be escaped in either
// kind of string, and a dot in a key, as in kubectl. The argument is the kind of string for messages.
func (p *parser) parseString(kind string) (string, error) {
	from, quote := p.pos, p.src[p.pos]
	p.pos++
	var b strings.Builder
	for {
		if p.atEnd() {
			return "", p.fail(CodeString, from, from+1, "", "%s is never closed", kind)
		}
		switch c := p.src[p.pos]; {
		case c == quote:
			p.pos++
			return b.String(), nil
		case c < ' ':
			return "", p.fail(CodeString, p.pos, p.pos+1, `write \n, \t or \u00XX`,
				"a control character in %s", kind)
		case c == '\\':
			r, err := p.parseEscape(kind)
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
		default:
			b.WriteByte(c)
			p.pos++
		}
	}
}

// parseEscape parses one escape, including surrogate pairs.
func (p *parser) parseEscape(kind string) (rune, error) {
	from := p.pos
	c := p.peekAt(1)
	if c == 'u' {
		r, ok := jsontext.CodeUnit(p.src, from+2)
		if !ok {
			return 0, p.fail(CodeString, from, min(from+6, len(p.src)), `four hexadecimal digits must follow "\u"`,
				"a broken escape in %s", kind)
		}
		p.pos += 6
		if !utf16.IsSurrogate(r) {
			return r, nil
		}
		if p.hasPrefix(`\u`) {
			if low, ok := jsontext.CodeUnit(p.src, p.pos+2); ok {
				if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
					p.pos += 6
					return full, nil
				}
			}
		}
		return 0, p.fail(CodeString, from, p.pos, "a pair of them makes one character",
			"half a surrogate pair in %s", kind)
	}
	if i := strings.IndexByte(`bfnrt/\'"`, c); i >= 0 && c != 0 {
		p.pos += 2
		return rune("\b\f\n\r\t/\\'\""[i]), nil
	}
	if c == '.' && kind == quotedKey {
		p.pos += 2
		return '.', nil
	}
	hint := `write "\\" for a backslash`
	if c == '.' {
		hint = "a dot in a string needs no backslash"
	}
	to := from + 1
	if p.pos++; !p.atEnd() {
		to = p.charEnd()
	}
	return 0, p.fail(CodeString, from, to, hint, "an unknown escape in %s", kind)
}
