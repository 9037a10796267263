package query

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode/utf8"
)

// Limits of a query's text.
const (
	maxBytes   = 16 << 10
	maxNesting = 64
)

// Parse parses a query:
//
//	issuer=letsencrypt                       an index and a value
//	issuer!=letsencrypt                      all other objects, also those without a value
//	expiry<2026-03-01T00:00:00Z              also <= > >=, on sorted indexes
//	expiry in [2026-01-01T00:00:00Z, 2026-02-01T00:00:00Z)   a range
//	host^=www.                               a prefix
//	host contains example                    a substring; also host=~"^www[.]", a regular expression
//	expiry<now+14d                           a time relative to now
//	address in 10.0.0.0/8                    an address within a range
//	team in (edge, payments)                 one of several values
//	team                                     has a value
//	!team                                    has none
//	condition=Ready/True                     the parts of a composite value
//	label("app=web")  where("@.spec.replicas > 2")  *
//	dangling(issuer)                         a reference without target; dangling() for any
//	refersTo(Issuer.cert-manager.io, prod/ca)   objects that refer to this one; referredBy is the reverse
//
// Conditions are joined by && (or a comma) and ||, negated by !, and grouped by parentheses; && binds tighter
// than ||. Values are bare words, JSON strings, or single-quoted text without escapes. A "/" joins the parts
// of a composite value; a backslash escapes it. The error is an [*Error].
func Parse(text string) (Query, error) {
	p := &parser{text: text}
	switch {
	case len(text) > maxBytes:
		return nil, &Error{Text: text[:0], Err: fmt.Errorf("the query is longer than %d bytes", maxBytes)}
	case !utf8.ValidString(text):
		return nil, &Error{Text: strings.ToValidUTF8(text, "\ufffd"),
			Err: errors.New("the query is not UTF-8")}
	}
	q, err := p.or(0)
	if err != nil {
		return nil, err
	}
	if p.skipBlanks(); p.pos < len(text) {
		return nil, p.unexpected("expected &&, || or the end")
	}
	return q, nil
}

type parser struct {
	text string
	pos  int
}

// failAt returns an error about the text from start to the current position, or about the character at start
// if that is empty.
func (p *parser) failAt(start int, format string, args ...any) error {
	end := p.pos
	if end <= start {
		_, size := utf8.DecodeRuneInString(p.text[start:])
		end = start + size
	}
	return &Error{Text: p.text, Offset: start, Length: end - start, Err: fmt.Errorf(format, args...)}
}

func (p *parser) unexpected(expected string) error {
	if p.pos >= len(p.text) {
		return p.failAt(len(p.text), "the query ends too early; %s", expected)
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.pos:])
	return p.failAt(p.pos, "%q is not allowed here; %s", r, expected)
}

func (p *parser) skipBlanks() {
	p.pos = len(p.text) - len(strings.TrimLeft(p.text[p.pos:], " \t\r\n"))
}

// take skips blanks and consumes the first matching token.
func (p *parser) take(tokens ...string) (string, bool) {
	p.skipBlanks()
	for _, t := range tokens {
		if strings.HasPrefix(p.text[p.pos:], t) {
			p.pos += len(t)
			return t, true
		}
	}
	return "", false
}

func (p *parser) or(depth int) (Query, error) { return p.join(depth, p.and, true, "||") }

func (p *parser) and(depth int) (Query, error) { return p.join(depth, p.unary, false, "&&", ",") }

func (p *parser) join(depth int, operand func(int) (Query, error), or bool,
	operators ...string) (Query, error) {
	first, err := operand(depth)
	if err != nil {
		return nil, err
	}
	subs := []Query{first}
	for {
		if _, ok := p.take(operators...); !ok {
			break
		}
		next, err := operand(depth)
		if err != nil {
			return nil, err
		}
		subs = append(subs, next)
	}
	if len(subs) == 1 {
		return first, nil
	}
	return junction{or: or, subs: subs}, nil
}

func (p *parser) unary(depth int) (Query, error) {
	p.skipBlanks()
	start := p.pos
	if depth > maxNesting {
		return nil, p.failAt(start, "the query is nested too deeply")
	}
	if _, ok := p.take("!"); ok {
		q, err := p.unary(depth + 1)
		if err != nil {
			return nil, err
		}
		return negation{q}, nil
	}
	if _, ok := p.take("("); ok {
		q, err := p.or(depth + 1)
		if err != nil {
			return nil, err
		}
		if _, ok := p.take(")"); !ok {
			return nil, p.failAt(start, `"(" is never closed; add ")"`)
		}
		return q, nil
	}
	if _, ok := p.take("*"); ok {
		return everything{}, nil
	}
	return p.comparison()
}

// name parses the name of an index or function.
func (p *parser) name() (string, error) {
	p.skipBlanks()
	start := p.pos
	for p.pos < len(p.text) && isName(p.text[p.pos]) {
		p.pos++
	}
	if p.pos == start {
		return "", p.unexpected("expected the name of an index")
	}
	return p.text[start:p.pos], nil
}

func isName(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '.' || c == '_' ||
		c == '-' || c == '/'
}

var comparisons = map[string]operator{
	"=": opEqual, "==": opEqual, "!=": opEqual, "<": opLess, "<=": opAtMost, ">": opGreater, ">=": opAtLeast,
	"^=": opPrefix,
	"=~": opMatches,
}

// comparison parses an index with its operator and value, or a function call.
func (p *parser) comparison() (Query, error) {
	p.skipBlanks()
	start := p.pos
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	if p.pos < len(p.text) && p.text[p.pos] == '(' {
		return p.function(name, start)
	}
	p.skipBlanks()
	text, ok := p.take("==", "=~", "!=", "<=", ">=", "^=", "=", "<", ">")
	c := &comparison{op: comparisons[text], index: name}
	switch {
	case ok:
		p.skipBlanks()
		if c.op == opMatches {
			err = p.search(c)
		} else {
			err = p.operand(c)
		}
		if err != nil {
			return nil, err
		}
	case p.takeWord("contains"):
		c.op = opContains
		if err := p.search(c); err != nil {
			return nil, err
		}
	case p.takeWord("in"):
		if err := p.parseIn(c); err != nil {
			return nil, err
		}
	default:
		c.op = opExists
		p.pos = start + len(name) // without the trailing blanks
	}
	c.position = textRange{p.text, start, p.pos}
	if text == "!=" {
		return negation{c}, nil
	}
	return c, nil
}

func (p *parser) operand(c *comparison) error {
	v, err := p.value()
	c.values = []value{v}
	return err
}

// search parses a search text, which is never split into parts.
func (p *parser) search(c *comparison) error {
	text, err := p.literal()
	c.values = []value{{parts: []string{text}, isJoinedText: true}}
	return err
}

// takeWord consumes a whole word.
func (p *parser) takeWord(w string) bool {
	p.skipBlanks()
	rest, ok := strings.CutPrefix(p.text[p.pos:], w)
	if !ok || rest != "" && isName(rest[0]) {
		return false
	}
	p.pos += len(w)
	return true
}

// parseIn parses a list of values between parentheses, or a range between [ and ).
func (p *parser) parseIn(c *comparison) error {
	p.skipBlanks()
	bracketStart := p.pos
	bracket, ok := p.take("(", "[")
	if !ok {
		if p.parseAddressRange(c) {
			return nil
		}
		return p.unexpected(`expected "(" and the values, or "[" and a range`)
	}
	c.op = opIn
	// an empty list is the text of In without values
	if _, empty := p.take(")"); empty && bracket == "(" {
		return nil
	}
	for {
		v, err := p.value()
		if err != nil {
			return err
		}
		c.values = append(c.values, v)
		if _, more := p.take(","); !more {
			break
		}
	}
	if _, ok := p.take(")"); !ok {
		return p.unclosedIn(c, bracket)
	}
	if bracket == "[" {
		c.op = opRange
		if len(c.values) != 2 {
			return p.failAt(bracketStart, "a range has two bounds, as in [1, 10); \"\" is no bound")
		}
	}
	return nil
}

// parseAddressRange parses an address range such as 10.0.0.0/8. It returns false if there is none.
func (p *parser) parseAddressRange(c *comparison) bool {
	start := p.pos
	text, err := p.literal()
	if err == nil {
		if _, err = netip.ParsePrefix(text); err == nil {
			c.op, c.values = opWithin, []value{{parts: []string{text}, isJoinedText: true}}
			return true
		}
	}
	p.pos = start
	return false
}

// unclosedIn returns the error for a list or a range that is not closed correctly.
func (p *parser) unclosedIn(c *comparison, bracket string) error {
	switch {
	case !strings.HasPrefix(p.text[p.pos:], "]"):
		return p.unexpected(`expected "," or ")"`)
	case bracket == "[" && len(c.values) == 2:
		return p.unexpected(fmt.Sprintf(
			"a range is written %s in [%s, %s), without its end; a list is written %s in (%s, %s)",
			c.index, c.values[0], c.values[1], c.index, c.values[0], c.values[1]))
	}
	return p.unexpected(`a list is written in (a, b), and a range in [a, b)`)
}

// value parses a word or a quoted text, or the parts of a value between parentheses.
func (p *parser) value() (value, error) {
	p.skipBlanks()
	start := p.pos
	if _, ok := p.take("("); !ok {
		text, err := p.literal()
		return value{parts: []string{text}, isJoinedText: true}, err
	}
	var v value
	for {
		if len(v.parts) == 0 {
			if _, ok := p.take(")"); ok {
				return v, nil
			}
		}
		text, err := p.literal()
		if err != nil {
			return v, err
		}
		v.parts = append(v.parts, text)
		if _, more := p.take(","); more {
			continue
		}
		if _, ok := p.take(")"); !ok {
			return v, p.failAt(start, `"(" is never closed; add ")"`)
		}
		return v, nil
	}
}

func (p *parser) literal() (string, error) {
	p.skipBlanks()
	start := p.pos
	switch rest := p.text[p.pos:]; {
	case strings.HasPrefix(rest, `"`):
		return p.doubleQuoted()
	case strings.HasPrefix(rest, "'"):
		text, _, ok := strings.Cut(rest[1:], "'")
		if !ok {
			p.pos = len(p.text)
			return "", p.failAt(start, "the quote is never closed; add '")
		}
		p.pos += len(text) + 2
		return text, nil
	}
	for p.pos < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.text[p.pos:])
		if !isBare(r) {
			break
		}
		p.pos += size
	}
	if p.pos == start {
		return "", p.unexpected("expected a value; put quotes around one with blanks or signs")
	}
	return p.text[start:p.pos], nil
}

// doubleQuoted parses a JSON string.
func (p *parser) doubleQuoted() (string, error) {
	start := p.pos
	for i := start + 1; i < len(p.text); i++ {
		switch p.text[i] {
		case '\\':
			i++
		case '"':
			p.pos = i + 1
			var text string
			if err := json.Unmarshal([]byte(p.text[start:p.pos]), &text); err != nil {
				return "", p.failAt(start, "this is not a valid JSON string; write \\\\ for a backslash")
			}
			return text, nil
		}
	}
	p.pos = len(p.text)
	return "", p.failAt(start, `the quote is never closed; add "`)
}
