package query

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/indexers/references"
	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/naming"
)

func (p *parser) parseFunction(name string, start int) (Query, error) {
	switch name {
	case "label", "where", "cel":
	case "dangling", "refersTo", "referredBy":
		return p.parseReferenceFunction(name, start)
	default:
		return nil, p.errorAt(start,
			"there is no function %s; there are label, where, cel, dangling, refersTo and referredBy", name)
	}
	p.position++
	p.skipBlanks()
	from := p.position
	text, err := p.parseLiteral()
	if err != nil {
		return nil, err
	}
	literalRange := textRange{p.text, from, p.position}
	if _, ok := p.take(")"); !ok {
		return nil, p.unexpectedError(`expected ")"; put quotes around what is between the parentheses`)
	}
	callRange := textRange{p.text, start, p.position}
	switch name {
	case "where":
		c := newCondition(text)
		c.literal = literalRange
		_, err := c.compile()
		return c, c.locate(err)
	case "cel":
		c := newCELQuery(text)
		c.literal = literalRange
		_, err := c.compile()
		return c, c.locate(err)
	}
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, callRange.locate(fmt.Errorf("this is not a label selector: %w", err))
	}
	return &labelQuery{selector: selector, text: text, position: callRange}, nil
}

// conditionError is an error in a condition within a query. Its text leaves out the position within the
// condition.
type conditionError struct{ jsonpathError *jsonpath.Error }

func (e conditionError) Error() string { return e.jsonpathError.Text() }

// Unwrap returns the error with the position in the condition.
func (e conditionError) Unwrap() error { return e.jsonpathError }

// offsetInLiteral converts an offset in a text to the offset in the literal that the text was parsed from.
func offsetInLiteral(literal string, offset int) int {
	switch literal[:1] {
	case "'":
		return offset + 1
	case `"`:
	default:
		return offset
	}
	for at := 1; at < len(literal); at++ {
		var text string
		if utf8.ValidString(literal[:at]) && json.Unmarshal([]byte(literal[:at]+`"`), &text) == nil &&
			len(text) >= offset {
			return at
		}
	}
	return len(literal) - 1
}

// parseReferenceFunction parses dangling(REFERENCE), refersTo(TYPE, KEY, REFERENCE) or referredBy(TYPE, KEY,
// REFERENCE). The reference is optional.
func (p *parser) parseReferenceFunction(name string, start int) (Query, error) {
	p.position++
	arguments, closed, err := p.parseLiterals()
	switch {
	case err != nil:
		return nil, err
	case !closed:
		return nil, p.unexpectedError(`expected "," or ")"`)
	}
	query := &referenceQuery{position: textRange{p.text, start, p.position}}
	if name == "dangling" {
		if len(arguments) > 1 {
			return nil, p.errorAt(start,
				"dangling takes the name of one reference, or nothing for all; join several by ||")
		}
	} else {
		if len(arguments) < 2 || len(arguments) > 3 || arguments[0] == "" || arguments[1] == "" {
			return nil, p.errorAt(start,
				"%s takes a type, an object and perhaps the name of a reference, as in %s(Issuer.cert-manager.io, prod/ca)", name, name)
		}
		query.kind = refersTo
		if name == "referredBy" {
			query.kind = referredBy
		}
		query.object = parseObject(arguments[0], arguments[1])
		arguments = arguments[2:]
	}
	if len(arguments) == 1 {
		query.reference = arguments[0]
	}
	return query, nil
}

// parseObject parses a type and a key. A type with a capital letter is a kind, otherwise a plural resource
// name.
func parseObject(typ, key string) references.Object {
	var o references.Object
	name, group, _ := strings.Cut(typ, ".")
	if o.Group = group; strings.ToLower(name) != name {
		o.Kind = name
	} else {
		o.Resource = name
	}
	o.Namespace, o.Name = naming.SplitKey(key)
	return o
}
