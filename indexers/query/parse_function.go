package query

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/indexers/jsonpath"
	"github.com/crdcache/crdcache/indexers/references"
)

// function reads what is between the parentheses of label and where.
func (p *parser) function(name string, start int) (Query, error) {
	switch name {
	case "label", "where":
	case "dangling", "refersTo", "referredBy":
		return p.linking(name, start)
	default:
		return nil, p.failAt(start,
			"there is no function %s; there are label, where, dangling, refersTo and referredBy", name)
	}
	p.at++
	p.blanks()
	from := p.at
	text, err := p.literal()
	if err != nil {
		return nil, err
	}
	written := p.text[from:p.at]
	if _, ok := p.take(")"); !ok {
		return nil, p.unexpected(`expected ")"; put quotes around what is between the parentheses`)
	}
	at := mark{p.text, start, p.at}
	if name == "where" {
		c := where(text)
		c.at = at
		_, err := c.compile()
		if wrong := (*jsonpath.Error)(nil); errors.As(err, &wrong) {
			start, end := placeIn(written, wrong.Offset), placeIn(written, wrong.Offset+wrong.Length)
			return nil, &Error{Text: p.text, Offset: from + start, Length: end - start,
				Err: conditionError{wrong}}
		}
		return c, at.locate(err)
	}
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, at.locate(fmt.Errorf("this is not a label selector: %w", err))
	}
	return &labelling{selector: selector, text: text, at: at}, nil
}

// conditionError is an error of a condition within a query, without the place that it has in the condition
// alone.
type conditionError struct{ of *jsonpath.Error }

// Error returns the code, the message and the remedy.
func (e conditionError) Error() string { return e.of.Text() }

// Unwrap returns the error with the place in the condition.
func (e conditionError) Unwrap() error { return e.of }

// placeIn returns where a byte of a text is in the literal that the text was written as.
func placeIn(literal string, offset int) int {
	switch literal[:1] {
	case "'":
		return offset + 1
	case `"`:
	default:
		return offset
	}
	at := 1
	for at < len(literal)-1 && offset > 0 {
		size := 1
		if literal[at] == '\\' {
			size = 2
			if literal[at+1] == 'u' {
				size = 6
			}
			if size == 6 && at+12 < len(literal) && literal[at+6:at+8] == `\u` &&
				utf16.IsSurrogate(codeUnit(literal[at+2:at+6])) {
				size = 12
			}
		}
		var text string
		_ = json.Unmarshal([]byte(`"`+literal[at:at+size]+`"`),
			&text) // it is part of a valid text, but maybe of a character
		at, offset = at+size, offset-max(len(text), 1)
	}
	return at
}

func codeUnit(hex string) rune {
	n, _ := strconv.ParseUint(hex, 16, 16)
	return rune(n)
}

// linking reads dangling(REFERENCE), refersTo(TYPE, KEY, REFERENCE) or referredBy of the same; the name of
// the reference may be left out.
func (p *parser) linking(name string, start int) (Query, error) {
	p.at++
	var arguments []string
	if _, ok := p.take(")"); !ok {
		for {
			text, err := p.literal()
			if err != nil {
				return nil, err
			}
			arguments = append(arguments, text)
			if _, more := p.take(","); !more {
				break
			}
		}
		if _, ok := p.take(")"); !ok {
			return nil, p.unexpected(`expected "," or ")"`)
		}
	}
	l := &linking{at: mark{p.text, start, p.at}}
	if name == "dangling" {
		if len(arguments) > 1 {
			return nil, p.failAt(start,
				"dangling takes the name of one reference, or nothing for all; join several by ||")
		}
	} else {
		if len(arguments) < 2 || len(arguments) > 3 || arguments[0] == "" || arguments[1] == "" {
			return nil, p.failAt(start,
				"%s takes a type, an object and perhaps the name of a reference, as in %s(Issuer.cert-manager.io, prod/ca)", name, name)
		}
		l.of = linkTo
		if name == "referredBy" {
			l.of = linkFrom
		}
		l.object = objectNamed(arguments[0], arguments[1])
		arguments = arguments[2:]
	}
	if len(arguments) == 1 {
		l.reference = arguments[0]
	}
	return l, nil
}

// objectNamed reads a type and a key. A type that begins with a capital letter is a kind, another a plural
// name.
func objectNamed(typ, key string) references.Object {
	var o references.Object
	name, group, _ := strings.Cut(typ, ".")
	if o.Group = group; strings.ToLower(name) != name {
		o.Kind = name
	} else {
		o.Resource = name
	}
	o.Namespace, o.Name = splitKey(key)
	return o
}
