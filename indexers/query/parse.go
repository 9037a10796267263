package query

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode/utf8"
)

// The limits of text: what people write is far below.
const (
	mostBytes   = 16 << 10
	mostNesting = 64
)

// Parse reads a query that is written as text:
//
//	issuer=letsencrypt                       an index and a value
//	issuer!=letsencrypt                      all other objects, those without a value too
//	expiry<2026-03-01T00:00:00Z              also <= > >=, on sorted indexes
//	expiry in [2026-01-01T00:00:00Z, 2026-02-01T00:00:00Z)   a range
//	host^=www.                               a beginning
//	host contains example                    a part of the text; also host=~"^www[.]", a regular expression
//	expiry<now+14d                           a time relative to now
//	address in 10.0.0.0/8                    an address within a range
//	team in (edge, payments)                 one of several values
//	team                                     has a value
//	!team                                    has none
//	condition=Ready/True                     the parts of a composite value
//	label("app=web")  where("@.spec.replicas > 2")  *
//	dangling(issuer)                         a reference that leads to nothing; dangling() for any
//	refersTo(Issuer.cert-manager.io, prod/ca)   what refers to an object; referredBy the other way round
//
// These are joined by && (or a comma) and ||, negated by !, and grouped by parentheses; && binds closer than
// ||. Values are bare words, or texts between double quotes with the escapes of JSON, or between single
// quotes without any. A "/" joins the parts of a composite value, and a backslash takes it literally. The
// error is an [*Error].
func Parse(text string) (Query, error) {
	p := &parser{text: text}
	switch {
	case len(text) > mostBytes:
		return nil, &Error{Text: text[:0], Err: fmt.Errorf("the query is longer than %d bytes", mostBytes)}
	case !utf8.ValidString(text):
		return nil, &Error{Text: strings.ToValidUTF8(text, "\ufffd"),
			Err: errors.New("the query is not UTF-8")}
	}
	q, err := p.or(0)
	if err != nil {
		return nil, err
	}
	if p.blanks(); p.at < len(text) {
		return nil, p.unexpected("expected &&, || or the end")
	}
	return q, nil
}

// parser reads a query from left to right.
type parser struct {
	text string
	at   int
}

// failAt makes an error about the bytes from start to where the parser is, or the character there.
func (p *parser) failAt(start int, format string, args ...any) error {
	end := p.at
	if end <= start {
		_, size := utf8.DecodeRuneInString(p.text[start:])
		end = start + size
	}
	return &Error{Text: p.text, Offset: start, Length: end - start, Err: fmt.Errorf(format, args...)}
}

func (p *parser) unexpected(expected string) error {
	if p.at >= len(p.text) {
		return p.failAt(len(p.text), "the query ends here; %s", expected)
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.at:])
	return p.failAt(p.at, "%q cannot stand here; %s", r, expected)
}

func (p *parser) blanks() {
	p.at = len(p.text) - len(strings.TrimLeft(p.text[p.at:], " \t\r\n"))
}

// take skips blanks and takes the first of the tokens that comes next.
func (p *parser) take(tokens ...string) (string, bool) {
	p.blanks()
	for _, t := range tokens {
		if strings.HasPrefix(p.text[p.at:], t) {
			p.at += len(t)
			return t, true
		}
	}
	return "", false
}

func (p *parser) or(depth int) (Query, error) { return p.join(depth, p.and, true, "||") }

func (p *parser) and(depth int) (Query, error) { return p.join(depth, p.unary, false, "&&", ",") }

// join reads operands between operators.
func (p *parser) join(depth int, operand func(int) (Query, error), or bool,
	operators ...string) (Query, error) {
	first, err := operand(depth)
	if err != nil {
		return nil, err
	}
	subs := []Query{first}
	for {
		if _, ok := p.take(operators...); !ok {
			if err := p.joinedByWord(); err != nil {
				return nil, err
			}
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
	p.blanks()
	start := p.at
	if depth > mostNesting {
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

// name reads the name of an index, or of a function.
func (p *parser) name() (string, error) {
	p.blanks()
	start := p.at
	for p.at < len(p.text) && isName(p.text[p.at]) {
		p.at++
	}
	if p.at == start {
		return "", p.unexpected("expected the name of an index")
	}
	return p.text[start:p.at], nil
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

// comparison reads an index with what it is compared to, or a function.
func (p *parser) comparison() (Query, error) {
	p.blanks()
	start := p.at
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	if err := p.negatedByWord(name, start); err != nil {
		return nil, err
	}
	if p.at < len(p.text) && p.text[p.at] == '(' {
		return p.function(name, start)
	}
	p.blanks()
	if err := p.foreignOperator(name); err != nil {
		return nil, err
	}
	text, ok := p.take("==", "=~", "!=", "<=", ">=", "^=", "=", "<", ">")
	c := &comparison{op: comparisons[text], index: name}
	switch {
	case ok:
		p.blanks()
		if err := p.starred(c, ""); err != nil {
			return nil, err
		}
		if c.op == opMatches {
			err = p.search(c)
		} else {
			err = p.operand(c)
		}
		if err != nil {
			return nil, err
		}
	case p.word("contains"):
		c.op = opContains
		if err := p.search(c); err != nil {
			return nil, err
		}
	case p.word("in"):
		if err := p.in(c); err != nil {
			return nil, err
		}
	default:
		if err := p.comparedByWord(name); err != nil {
			return nil, err
		}
		c.op = opExists
		p.at = start + len(name) // without the blanks behind it
	}
	c.at = mark{p.text, start, p.at}
	if text == "!=" {
		return negation{c}, nil
	}
	return c, nil
}

// operand reads the value of a comparison.
func (p *parser) operand(c *comparison) error {
	v, err := p.value()
	if err != nil {
		return err
	}
	c.values = []value{v}
	return p.starred(c, strings.Join(v.parts, "/"))
}

// search reads the text of a search, which is never taken apart.
func (p *parser) search(c *comparison) error {
	text, err := p.literal()
	c.values = []value{{parts: []string{text}, joined: true}}
	return err
}

// word takes a word, which is not part of a longer one.
func (p *parser) word(w string) bool {
	p.blanks()
	rest, ok := strings.CutPrefix(p.text[p.at:], w)
	if !ok || rest != "" && isName(rest[0]) {
		return false
	}
	p.at += len(w)
	return true
}

// in reads a list of values between parentheses, or a range between [ and ).
func (p *parser) in(c *comparison) error {
	p.blanks()
	open := p.at
	bracket, ok := p.take("(", "[")
	if !ok {
		if p.within(c) {
			return nil
		}
		return p.unexpected(`expected "(" and the values, or "[" and a range`)
	}
	c.op = opIn
	// none of no values, as In without values is written
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
			return p.failAt(open, "a range has two bounds, as in [1, 10); \"\" is no bound")
		}
	}
	return nil
}

// within reads a range of addresses, such as 10.0.0.0/8. It is false where there is none.
func (p *parser) within(c *comparison) bool {
	start := p.at
	text, err := p.literal()
	if err == nil {
		if _, err = netip.ParsePrefix(text); err == nil {
			c.op, c.values = opWithin, []value{{parts: []string{text}, joined: true}}
			return true
		}
	}
	p.at = start
	return false
}

// unclosedIn explains what stands where a list or a range should end.
func (p *parser) unclosedIn(c *comparison, bracket string) error {
	switch {
	case !strings.HasPrefix(p.text[p.at:], "]"):
		return p.unexpected(`expected "," or ")"`)
	case bracket == "[" && len(c.values) == 2:
		return p.unexpected(fmt.Sprintf(
			"a range is written %s in [%s, %s), without its end; a list is written %s in (%s, %s)",
			c.index, c.values[0], c.values[1], c.index, c.values[0], c.values[1]))
	}
	return p.unexpected(`a list is written in (a, b), and a range in [a, b)`)
}

// value reads a word or a text between quotes, or the parts of a value between parentheses, each of which
// stands for itself.
func (p *parser) value() (value, error) {
	p.blanks()
	open := p.at
	if _, ok := p.take("("); !ok {
		text, err := p.literal()
		return value{parts: []string{text}, joined: true}, err
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
			return v, p.failAt(open, `"(" is never closed; add ")"`)
		}
		return v, nil
	}
}

func (p *parser) literal() (string, error) {
	p.blanks()
	start := p.at
	switch rest := p.text[p.at:]; {
	case strings.HasPrefix(rest, `"`):
		return p.doubleQuoted()
	case strings.HasPrefix(rest, "'"):
		text, _, ok := strings.Cut(rest[1:], "'")
		if !ok {
			p.at = len(p.text)
			return "", p.failAt(start, "the quote is never closed; add '")
		}
		p.at += len(text) + 2
		return text, nil
	}
	for p.at < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.text[p.at:])
		if !isBare(r) {
			break
		}
		p.at += size
	}
	if p.at == start {
		return "", p.unexpected("expected a value; put quotes around one with blanks or signs")
	}
	return p.text[start:p.at], nil
}

// doubleQuoted reads a text with the escapes of JSON.
func (p *parser) doubleQuoted() (string, error) {
	start := p.at
	for i := start + 1; i < len(p.text); i++ {
		switch p.text[i] {
		case '\\':
			i++
		case '"':
			p.at = i + 1
			var text string
			if err := json.Unmarshal([]byte(p.text[start:p.at]), &text); err != nil {
				return "", p.failAt(start, "this is not a text of JSON; write \\\\ for a backslash")
			}
			return text, nil
		}
	}
	p.at = len(p.text)
	return "", p.failAt(start, `the quote is never closed; add "`)
}
