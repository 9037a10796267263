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
	"github.com/crdcache/crdcache/indexers/internal/sortkey"
	"github.com/crdcache/crdcache/internal/naming"
)

// matchingKeys tests all values of an index. Its cost grows with their number, not with the number of
// objects.
func (c *compiler) matchingKeys(index openedIndex, q *comparison) ([]string, error) {
	test, err := c.searchTest(index, q)
	if err != nil {
		return nil, err
	}
	keys := []string{}
	visit := func(key string, _ int) bool {
		if (key != indexers.Null || index.isComposite()) && test(index.displayKey(key)) {
			keys = append(keys, key)
		}
		return c.meter.spend(1)
	}
	index.eachKey(visit)
	if c.meter.isCancelled() {
		return nil, c.meter.err
	}
	return keys, nil
}

// searchTest compiles the operand of matches, contains or within to a test of one value of the index.
func (c *compiler) searchTest(index openedIndex, q *comparison) (func(value string) bool, error) {
	operand := q.values[0].parts[0]
	if q.op == opWithin {
		typ, within, err := index.addressSpan(operand)
		return func(value string) bool {
			key, ok := typ.Key(value)
			return ok && within.contains(key)
		}, err
	}
	if index.declared != nil {
		for _, typ := range index.declared.Types() {
			if typ != "" && typ != sortkey.String.String() && !index.isComposite() {
				return nil, &indexers.OperandError{Index: index.name,
					Message: fmt.Sprintf("a value of type %s cannot be searched as text; compare it, or use a range", typ)}
			}
		}
	}
	if q.op == opMatches {
		expression, err := naming.CompileRegexp(operand)
		if errors.Is(err, naming.ErrRegexpTooLarge) {
			return nil, err
		}
		if err != nil {
			return nil, fmt.Errorf("this is not a regular expression: %w", err)
		}
		return func(value string) bool { return c.meter.matches(expression, value) }, nil
	}
	operand = index.applyCase(operand)
	return func(value string) bool { return strings.Contains(value, operand) }, nil
}

// longText is a length in bytes. Matching longer texts stops when the query is cancelled.
const longText = 1 << 10

// matches reports whether the expression matches the text. The result is undefined after the end of the
// query.
func (m *workMeter) matches(re *regexp.Regexp, text string) bool {
	if len(text) < longText {
		return m.spend(1+len(text)/8) && re.MatchString(text)
	}
	return re.MatchReader(&meteredText{strings.NewReader(text), m})
}

// meteredText ends early if the meter's context ends.
type meteredText struct {
	*strings.Reader
	meter *workMeter
}

func (t *meteredText) ReadRune() (r rune, size int, err error) {
	if !t.meter.spend(1) {
		return 0, 0, io.EOF
	}
	return t.Reader.ReadRune()
}

// applyCase applies the case transforms of the index to a substring. The guards protect blanks at its ends:
// in the whole value they may be between words.
func (o openedIndex) applyCase(text string) string {
	if o.declared == nil || o.isComposite() {
		return text
	}
	const guard = "."
	guarded := o.declared.Operand(0, guard+text+guard, false)
	return strings.TrimSuffix(strings.TrimPrefix(guarded, guard), guard)
}

// addressSpan returns the type of an index of addresses or address ranges, and the span of the sort keys
// within a range.
func (o openedIndex) addressSpan(operand string) (typ sortkey.Type, within span, err error) {
	if o.declared != nil && !o.isComposite() {
		typ, _ = sortkey.TypeNamed(o.declared.Types()[0])
	}
	if typ != sortkey.IP && typ != sortkey.CIDR {
		return typ, span{}, &indexers.OperandError{Index: o.name,
			Message: "it has no addresses; declare type: IP or CIDR"}
	}
	addressRange, ok := sortkey.ParseRange(operand)
	if !ok {
		return typ, span{}, errors.New("within needs an address range; write one such as 10.0.0.0/8 or 2001:db8::/32")
	}
	within.low, within.high = typ.Within(addressRange)
	return typ, within, nil
}

// unmatchableLetter returns a letter of an expression that no value can contain, because the index converts
// all values to the other case.
func (o openedIndex) unmatchableLetter(expression string) (letter string, ok bool) {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return "", false
	}
	var visit func(*syntax.Regexp) bool
	visit = func(r *syntax.Regexp) bool {
		if r.Op != syntax.OpLiteral || r.Flags&syntax.FoldCase != 0 {
			return slices.ContainsFunc(r.Sub, visit)
		}
		return slices.ContainsFunc(r.Rune, func(c rune) bool {
			letter = string(c)
			return o.applyCase(letter) != letter
		})
	}
	return letter, visit(parsed)
}
