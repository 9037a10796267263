package query

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/internal/regex"
	"github.com/crdcache/crdcache/indexers/internal/sortkey"
)

// searchedKeys looks at all values of an index: what it costs follows their number, and not that of the
// objects.
func (c *compiler) searchedKeys(index access, q *comparison) ([]string, error) {
	test, err := c.searched(index, q)
	if err != nil {
		return nil, err
	}
	keys := []string{}
	look := func(key string, _ int) bool {
		if (key != indexers.Null || index.composite()) && test(index.show(key)) {
			keys = append(keys, key)
		}
		return c.meter.work(1)
	}
	if low, high, ok := index.addresses(q); ok {
		index.Keys(low, high, false, look)
	} else {
		index.each(look)
	}
	if c.meter.ended() {
		return nil, c.meter.err
	}
	return keys, nil
}

// searched returns the test of each value.
func (c *compiler) searched(a access, q *comparison) (func(value string) bool, error) {
	operand := q.values[0].parts[0]
	if q.op == opWithin {
		return a.within(operand)
	}
	if a.declared != nil {
		for _, typ := range a.declared.Types() {
			if typ != "" && typ != sortkey.String.String() && !a.composite() {
				return nil, &indexers.OperandError{Index: a.name,
					Message: fmt.Sprintf("a value of type %s has no text to search in; compare it, or use a range", typ)}
			}
		}
	}
	if q.op == opMatches {
		expression, err := regex.Compile(operand)
		if large := (*regex.TooLargeError)(nil); errors.As(err, &large) {
			return nil, err
		}
		if err != nil {
			return nil, fmt.Errorf("this is not a regular expression: %w", err)
		}
		return func(value string) bool { return c.meter.matches(expression, value) }, nil
	}
	operand = a.folded(operand)
	return func(value string) bool { return strings.Contains(value, operand) }, nil
}

// longText is the number of bytes from which on a match looks at the context in between.
const longText = 1 << 10

// matches tests a text. Once the caller's context has ended, the result means nothing.
func (m *meter) matches(e *regexp.Regexp, text string) bool {
	if len(text) < longText {
		return m.work(1+len(text)/8) && e.MatchString(text)
	}
	return e.MatchReader(&meteredText{strings.NewReader(text), m})
}

// meteredText is a text that ends once the meter is full.
type meteredText struct {
	*strings.Reader
	meter *meter
}

// ReadRune implements io.RuneReader.
func (t *meteredText) ReadRune() (r rune, size int, err error) {
	if !t.meter.work(1) {
		return 0, 0, io.EOF
	}
	return t.Reader.ReadRune()
}

// folded gives a part of a text in the case that the index has it in. Blanks at its ends stay, which may be
// within the whole text.
func (a access) folded(text string) string {
	if a.declared == nil || a.composite() {
		return text
	}
	const guard = "."
	guarded := a.declared.Operand(0, guard+text+guard, false)
	return strings.TrimSuffix(strings.TrimPrefix(guarded, guard), guard)
}

var errNoPrefix = errors.New("addresses are searched by a range of them; write one such as 10.0.0.0/8 or 2001:db8::/32")

// within tests addresses, and ranges of them.
func (a access) within(operand string) (func(value string) bool, error) {
	typ := a.addressType()
	if typ == sortkey.Any {
		return nil, &indexers.OperandError{Index: a.name,
			Message: "it has no addresses to be within a range; declare type: ip or cidr"}
	}
	wide, ok := sortkey.ParseRange(operand)
	if !ok {
		return nil, errNoPrefix
	}
	low, high := typ.Within(wide)
	return func(value string) bool {
		key, ok := typ.Key(value)
		return ok && key >= low && key < high
	}, nil
}

// addressType is ip or cidr, or the zero value for indexes of something else.
func (a access) addressType() sortkey.Type {
	if a.declared == nil || a.composite() {
		return sortkey.Any
	}
	if typ, _ := sortkey.Named(a.declared.Types()[0]); typ == sortkey.IP || typ == sortkey.CIDR {
		return typ
	}
	return sortkey.Any
}

// addresses gives the stretch of a sorted index of addresses that holds all of a range.
func (a access) addresses(q *comparison) (low, high string, ok bool) {
	if q.op != opWithin || !a.sorted() {
		return "", "", false
	}
	wide, ok := sortkey.ParseRange(q.values[0].parts[0])
	low, high = a.addressType().Within(wide)
	return low, high, ok
}

// miscased gives a letter of an expression that no value of the index has, as its transforms make all of them
// lower or upper case; an expression is taken as it is.
func (a access) miscased(expression string) (letter string, ok bool) {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return "", false
	}
	var look func(*syntax.Regexp) bool
	look = func(r *syntax.Regexp) bool {
		if r.Op != syntax.OpLiteral || r.Flags&syntax.FoldCase != 0 {
			return slices.ContainsFunc(r.Sub, look)
		}
		for _, c := range r.Rune {
			if letter = string(c); a.folded(letter) != letter {
				return true
			}
		}
		return false
	}
	return letter, look(parsed)
}
