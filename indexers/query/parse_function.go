package query

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/indexers/references"
)

// function reads what is between the parentheses of label and where.
func (p *parser) function(name string, start int) (Query, error) {
	switch name {
	case "label", "where":
	case "dangling", "refersTo", "referredBy":
		return p.linking(name, start)
	default:
		return nil, p.failAt(start, "there is no function %s; there are label, where, dangling, refersTo and referredBy", name)
	}
	p.at++
	text, err := p.literal()
	if err != nil {
		return nil, err
	}
	if _, ok := p.take(")"); !ok {
		return nil, p.unexpected(`expected ")"; put quotes around what is between the parentheses`)
	}
	at := mark{p.text, start, p.at}
	if name == "where" {
		c := where(text)
		c.at = at
		if _, err := c.compile(); err != nil {
			return nil, at.locate(err)
		}
		return c, nil
	}
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, at.locate(fmt.Errorf("this is not a label selector: %w", err))
	}
	return &labelling{selector: selector, text: text, at: at}, nil
}

// linking reads dangling(REFERENCE), refersTo(TYPE, KEY, REFERENCE) or referredBy of the same; the name of the reference
// may be left out.
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
			return nil, p.failAt(start, "dangling takes the name of one reference, or nothing for all; join several by ||")
		}
	} else {
		if len(arguments) < 2 || len(arguments) > 3 || arguments[0] == "" || arguments[1] == "" {
			return nil, p.failAt(start, "%s takes a type, an object and perhaps the name of a reference, as in %s(Issuer.cert-manager.io, prod/ca)", name, name)
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

// objectNamed reads a type and a key. A type that begins with a capital letter is a kind, another a plural name.
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
