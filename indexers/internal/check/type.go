package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers/internal/config"
	"github.com/crdcache/crdcache/indexers/internal/sortkey"
)

// typed reports a type that no value of the path can have, or that some cannot, and an order that is not
// the one of the values.
func (k *checking) typed(index *config.Index, p config.Part, ends []cursor) {
	if len(ends) == 0 || len(p.Transforms) > 0 {
		return
	}
	kinds := map[string]bool{}
	never := p.Type != sortkey.Any
	for _, e := range ends {
		kind := e.scalarKind()
		if kind == "" {
			return
		}
		kinds[kind] = true
		some, _ := e.takes(p.Type)
		never = never && !some
	}
	e := ends[0]
	if never {
		k.fail(config.CodeTypeMismatch, k.file.PlaceOf(p.TypeAt),
			fmt.Sprintf("%s is %s, which is never of type %s", e.name(), e.sort(),
				p.Type), typeHint(e.schema))
		return
	}
	k.partly(p, ends)
	if p.Type == sortkey.Any && e.isQuantity() {
		k.fail(config.CodeTextQuantity, k.expression(),
			fmt.Sprintf("%s is a quantity and is compared as text, where 1Gi is not 1024Mi",
				e.name()), "use type: quantity")
		return
	}
	if index.Sorted && p.Type == sortkey.Any && (kinds[kindInteger] || kinds[kindNumber]) {
		k.fail(config.CodeTextOrder, k.expression(),
			fmt.Sprintf("%s is a number and is ordered as text, where 10 comes before 9",
				e.name()), typeHint(e.schema))
	}
}

// partly reports a type that only some of the values of the path have: the others would be missed without a
// word.
func (k *checking) partly(p config.Part, ends []cursor) {
	for _, e := range ends {
		_, which := e.takes(p.Type)
		if left, hint := leftOut(p.Type, e.scalarKind(), which); left != "" {
			k.fail(config.CodeTypePartly, k.file.PlaceOf(p.TypeAt),
				fmt.Sprintf("%s is %s, and %s left out of an index of type %s", e.name(), e.sort(),
					left, p.Type), hint)
			return
		}
	}
}

// leftOut says which values of a kind are not of a type, with the way out; "" when there are none that one
// knows of.
func leftOut(typ sortkey.Type, kind string, listed []string) (which, hint string) {
	const anything = "leave out the type, which takes all values as text"
	switch {
	case typ == sortkey.Any:
		return "", ""
	case !slices.Contains(takenKinds[typ], kind): // beside others that are
		return "that is", anything
	case len(listed) > 0:
		verb := " are"
		if len(listed) == 1 {
			verb = " is"
		}
		return strings.Join(listed, ", ") + verb, anything
	case typ == sortkey.Int && kind == kindNumber:
		return "values with a fraction, such as 2.5, are", "use type: number"
	case typ == sortkey.String && kind == kindEither:
		return "the numbers are", anything
	}
	return "", ""
}

// The kinds of values that indexes hold: what the type of a schema can be, and what it says by other means.
const (
	kindString  = "string"
	kindInteger = "integer"
	kindNumber  = "number"
	kindBoolean = "boolean"
	kindEither  = "int-or-string"
	kindTime    = "date-time"
)

// takenKinds are the kinds of values that a type can be read from. Text can be nearly everything.
var takenKinds = map[sortkey.Type][]string{
	sortkey.String:   {kindString, kindTime, kindEither},
	sortkey.Int:      {kindInteger, kindNumber, kindString, kindEither},
	sortkey.Number:   {kindInteger, kindNumber, kindString, kindEither},
	sortkey.Bool:     {kindBoolean, kindString, kindEither},
	sortkey.Quantity: {kindInteger, kindNumber, kindString, kindEither},
	sortkey.Duration: {kindString, kindEither},
	sortkey.Time:     {kindString, kindTime, kindEither},
	sortkey.IP:       {kindString, kindEither},
	sortkey.SemVer:   {kindString, kindInteger, kindNumber, kindEither},
	sortkey.Date:     {kindString, kindEither},
	sortkey.CIDR:     {kindString, kindEither},
}

// formats are those of which all values look alike, with an example of each form, and the type that fits
// best. Text of other formats may be anything.
var formats = map[string]struct {
	examples []string
	typ      sortkey.Type
}{
	"date":     {[]string{"2026-01-31"}, sortkey.Date},
	"cidr":     {[]string{"10.0.0.0/8", "2001:db8::/32"}, sortkey.CIDR},
	"ip":       {[]string{"10.0.0.1", "2001:db8::1"}, sortkey.IP},
	"ipv4":     {[]string{"10.0.0.1"}, sortkey.IP},
	"ipv6":     {[]string{"2001:db8::1"}, sortkey.IP},
	"duration": {[]string{"1h30m", "90m", "90s"}, sortkey.Duration},
	"email":    {[]string{"someone@example.com"}, sortkey.String},
	"uuid":     {[]string{"123e4567-e89b-12d3-a456-426614174000"}, sortkey.String},
}

// takes reports whether some value at the cursor can be read as a type. which are the listed values that
// cannot.
func (c cursor) takes(typ sortkey.Type) (some bool, which []string) {
	kind := c.scalarKind()
	if !slices.Contains(takenKinds[typ], kind) {
		return false, nil
	}
	if len(c.schema.Enum) > 0 {
		for _, v := range c.schema.Enum {
			if _, ok := typ.Key(plainText(v)); !ok {
				which = append(which, literalText(v))
			}
		}
		return len(which) < len(c.schema.Enum), which
	}
	format, known := formats[c.schema.Format]
	return kind != kindString || !known || slices.ContainsFunc(format.examples, func(text string) bool {
		_, ok := typ.Key(text)
		return ok
	}), nil
}

// plainText writes a value as indexes read it.
func plainText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return literalText(v)
}

// sort says what values at the cursor are, as exactly as the schema does.
func (c cursor) sort() string {
	switch _, known := formats[c.schema.Format]; {
	case len(c.schema.Enum) > 0:
		values := make([]string, len(c.schema.Enum))
		for i, v := range c.schema.Enum {
			values[i] = literalText(v)
		}
		return "one of " + strings.Join(values, ", ")
	case known && c.schema.Type == kindString:
		return "text of the format " + c.schema.Format
	}
	return c.kind()
}

// isQuantity recognises what controller-gen makes of a resource.Quantity.
func (c cursor) isQuantity() bool {
	return c.schema.IntOrString && strings.Contains(c.schema.Pattern, "[KMGTPE]i")
}

// scalarKind is the kind of the values if it is one that indexes hold.
func (c cursor) scalarKind() string {
	switch t := c.schema.Type; {
	case c.schema.IntOrString:
		return kindEither
	case t == kindString && c.schema.Format == kindTime:
		return kindTime
	case t == kindString, t == kindInteger, t == kindNumber, t == kindBoolean:
		return t
	}
	return ""
}

// typeHint names the type that fits a schema.
func typeHint(s *crd.Schema) string {
	switch {
	case s.Type == "integer":
		return "use type: int"
	case s.Type == "number":
		return "use type: number"
	case s.Type == "boolean":
		return "use type: bool"
	case s.Format == kindTime:
		return "use type: time"
	}
	if format, known := formats[s.Format]; known && s.Type == kindString && len(s.Enum) == 0 {
		return "use type: " + format.typ.String()
	}
	return "use type: string, or none"
}
