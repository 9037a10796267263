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
//	issuer!=letsencrypt                      all other objects, also without a value
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
	q, err := p.parseOr(0)
	if err != nil {
		return nil, err
	}
	if p.skipBlanks(); p.position < len(text) {
		return nil, p.unexpectedError("expected &&, || or the end")
	}
	return q, nil
}

type parser struct {
	text     string
	position int
}

// errorAt returns an error about the text between start and the current position. If this text is empty,
// the error is about the character at start.
func (p *parser) errorAt(start int, format string, args ...any) error {
	end := p.position
	if end <= start {
		_, size := utf8.DecodeRuneInString(p.text[start:])
		end = start + size
	}
	return &Error{Text: p.text, Offset: start, Length: end - start, Err: fmt.Errorf(format, args...)}
}

func (p *parser) unexpectedError(expected string) error {
	if p.position >= len(p.text) {
		return p.errorAt(len(p.text), "the query ends too early; %s", expected)
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.position:])
	return p.errorAt(p.position, "%q is not allowed here; %s", r, expected)
}

func (p *parser) skipBlanks() {
	p.position = len(p.text) - len(strings.TrimLeft(p.text[p.position:], " \t\r\n"))
}

// take skips blanks and consumes the first matching token.
func (p *parser) take(tokens ...string) (string, bool) {
	p.skipBlanks()
	for _, t := range tokens {
		if strings.HasPrefix(p.text[p.position:], t) {
			p.position += len(t)
			return t, true
		}
	}
	return "", false
}

func (p *parser) parseOr(depth int) (Query, error) {
	return p.parseJunction(depth, p.parseAnd, true, "||")
}

func (p *parser) parseAnd(depth int) (Query, error) {
	return p.parseJunction(depth, p.parseUnary, false, "&&", ",")
}

func (p *parser) parseJunction(depth int, parseOperand func(int) (Query, error), isOr bool,
	operators ...string) (Query, error) {
	first, err := parseOperand(depth)
	if err != nil {
		return nil, err
	}
	subs := []Query{first}
	for {
		if _, ok := p.take(operators...); !ok {
			break
		}
		next, err := parseOperand(depth)
		if err != nil {
			return nil, err
		}
		subs = append(subs, next)
	}
	if len(subs) == 1 {
		return first, nil
	}
	return junction{isOr: isOr, subs: subs}, nil
}

func (p *parser) parseUnary(depth int) (Query, error) {
	p.skipBlanks()
	start := p.position
	if depth > maxNesting {
		return nil, p.errorAt(start, "the query is nested too deeply")
	}
	if _, ok := p.take("!"); ok {
		q, err := p.parseUnary(depth + 1)
		if err != nil {
			return nil, err
		}
		return negation{q}, nil
	}
	if _, ok := p.take("("); ok {
		q, err := p.parseOr(depth + 1)
		if err != nil {
			return nil, err
		}
		if _, ok := p.take(")"); !ok {
			return nil, p.errorAt(start, `"(" is never closed; add ")"`)
		}
		return q, nil
	}
	if _, ok := p.take("*"); ok {
		return matchAll{}, nil
	}
	return p.parseComparison()
}

// parseName parses the name of an index or function.
func (p *parser) parseName() (string, error) {
	p.skipBlanks()
	start := p.position
	for p.position < len(p.text) && isName(p.text[p.position]) {
		p.position++
	}
	if p.position == start {
		return "", p.unexpectedError("expected the name of an index")
	}
	return p.text[start:p.position], nil
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

// parseComparison parses an index with its operator and value, or a function call.
func (p *parser) parseComparison() (Query, error) {
	p.skipBlanks()
	start := p.position
	name, err := p.parseName()
	if err != nil {
		return nil, err
	}
	if p.position < len(p.text) && p.text[p.position] == '(' {
		return p.parseFunction(name, start)
	}
	text, ok := p.take("==", "=~", "!=", "<=", ">=", "^=", "=", "<", ">")
	c := &comparison{op: comparisons[text], index: name}
	switch {
	case ok && c.op == opMatches:
		c.values, err = p.parseSearchText()
	case ok:
		c.values = make([]value, 1)
		c.values[0], err = p.parseValue()
	case p.takeWord("contains"):
		c.op = opContains
		c.values, err = p.parseSearchText()
	case p.takeWord("in"):
		err = p.parseIn(c)
	default:
		c.op = opExists
		p.position = start + len(name) // without the trailing blanks
	}
	if err != nil {
		return nil, err
	}
	c.position = textRange{p.text, start, p.position}
	if text == "!=" {
		return negation{c}, nil
	}
	return c, nil
}

// parseSearchText parses a search text, which is never split into parts.
func (p *parser) parseSearchText() ([]value, error) {
	text, err := p.parseLiteral()
	return []value{{parts: []string{text}, isJoinedText: true}}, err
}

// takeWord consumes a whole word.
func (p *parser) takeWord(w string) bool {
	p.skipBlanks()
	rest, ok := strings.CutPrefix(p.text[p.position:], w)
	if !ok || rest != "" && isName(rest[0]) {
		return false
	}
	p.position += len(w)
	return true
}

// parseIn parses a list of values between parentheses, or a range between [ and ).
func (p *parser) parseIn(c *comparison) error {
	p.skipBlanks()
	bracketStart := p.position
	bracket, ok := p.take("(", "[")
	if !ok {
		if p.parseAddressRange(c) {
			return nil
		}
		return p.unexpectedError(`expected "(" and the values, or "[" and a range`)
	}
	c.op = opIn
	// an empty list is the text of In without values
	if _, empty := p.take(")"); empty && bracket == "(" {
		return nil
	}
	for {
		v, err := p.parseValue()
		if err != nil {
			return err
		}
		c.values = append(c.values, v)
		if _, hasMore := p.take(","); !hasMore {
			break
		}
	}
	if _, ok := p.take(")"); !ok {
		return p.unclosedInError(c, bracket)
	}
	if bracket == "[" {
		c.op = opRange
		if len(c.values) != 2 {
			return p.errorAt(bracketStart, "a range has two bounds, as in [1, 10); \"\" is no bound")
		}
	}
	return nil
}

// parseAddressRange parses an address range such as 10.0.0.0/8. It returns false if there is none.
func (p *parser) parseAddressRange(c *comparison) bool {
	start := p.position
	values, err := p.parseSearchText()
	if err == nil {
		_, err = netip.ParsePrefix(values[0].parts[0])
	}
	if err != nil {
		p.position = start
		return false
	}
	c.op, c.values = opWithin, values
	return true
}

// unclosedInError returns the error for a list or a range that is not closed correctly.
func (p *parser) unclosedInError(c *comparison, bracket string) error {
	switch {
	case !strings.HasPrefix(p.text[p.position:], "]"):
		return p.unexpectedError(`expected "," or ")"`)
	case bracket == "[" && len(c.values) == 2:
		return p.unexpectedError(fmt.Sprintf(
			"a range is written %s in [%s, %s), without its end; a list is written %s in (%s, %s)",
			c.index, c.values[0], c.values[1], c.index, c.values[0], c.values[1]))
	}
	return p.unexpectedError(`a list is written in (a, b), and a range in [a, b)`)
}

// parseValue parses a word or a quoted text, or the parts of a value between parentheses.
func (p *parser) parseValue() (value, error) {
	p.skipBlanks()
	start := p.position
	if _, ok := p.take("("); !ok {
		text, err := p.parseLiteral()
		return value{parts: []string{text}, isJoinedText: true}, err
	}
	parts, closed, err := p.parseLiterals()
	if err == nil && !closed {
		err = p.errorAt(start, `"(" is never closed; add ")"`)
	}
	return value{parts: parts}, err
}

// parseLiterals parses texts that are separated by commas, and reports whether a closing parenthesis follows.
func (p *parser) parseLiterals() (texts []string, closed bool, err error) {
	if _, isEmpty := p.take(")"); isEmpty {
		return nil, true, nil
	}
	for hasMore := true; hasMore; _, hasMore = p.take(",") {
		text, err := p.parseLiteral()
		if err != nil {
			return nil, false, err
		}
		texts = append(texts, text)
	}
	_, closed = p.take(")")
	return texts, closed, nil
}

func (p *parser) parseLiteral() (string, error) {
	p.skipBlanks()
	start := p.position
	switch rest := p.text[p.position:]; {
	case strings.HasPrefix(rest, `"`):
		return p.parseDoubleQuoted()
	case strings.HasPrefix(rest, "'"):
		text, _, ok := strings.Cut(rest[1:], "'")
		if !ok {
			p.position = len(p.text)
			return "", p.errorAt(start, "the quote is never closed; add '")
		}
		p.position += len(text) + 2
		return text, nil
	}
	for p.position < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.text[p.position:])
		if !isUnquotedRune(r) {
			break
		}
		p.position += size
	}
	if p.position == start {
		return "", p.unexpectedError("expected a value; put quotes around one with blanks or signs")
	}
	return p.text[start:p.position], nil
}

// parseDoubleQuoted parses a JSON string.
func (p *parser) parseDoubleQuoted() (string, error) {
	start := p.position
	for i := start + 1; i < len(p.text); i++ {
		switch p.text[i] {
		case '\\':
			i++
		case '"':
			p.position = i + 1
			var text string
			if err := json.Unmarshal([]byte(p.text[start:p.position]), &text); err != nil {
				return "", p.errorAt(start, "this is not a valid JSON string; write \\\\ for a backslash")
			}
			return text, nil
		}
	}
	p.position = len(p.text)
	return "", p.errorAt(start, `the quote is never closed; add "`)
}
