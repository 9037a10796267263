package indexers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers/internal/sortkey"
	"github.com/crdcache/crdcache/internal/jsontext"
	"github.com/crdcache/crdcache/internal/naming"
)

// checkType reports an index type that no value or only some values at the path have, and numbers sorted as
// text.
func (c *checker) checkType(index *Index, part indexPart, ends []cursor) {
	if len(ends) == 0 || len(part.transforms) > 0 {
		return
	}
	kinds := map[string]bool{}
	isMistyped := part.typ != sortkey.Any
	for _, e := range ends {
		kind := e.scalarKind()
		if kind == "" {
			return
		}
		kinds[kind] = true
		acceptsSome, _ := e.acceptsType(part.typ)
		isMistyped = isMistyped && !acceptsSome
	}
	e := ends[0]
	if isMistyped {
		c.fail(codeTypeMismatch, c.file.positionOf(part.typeNode),
			fmt.Sprintf("%s is %s, which is never of type %s", e.name(), e.describeValues(),
				part.typ), typeHint(e.schema))
		return
	}
	c.checkPartialType(part, ends)
	// the schema that controller-gen generates for a resource.Quantity
	if part.typ == sortkey.Any && e.schema.IntOrString && strings.Contains(e.schema.Pattern, "[KMGTPE]i") {
		c.fail(codeTextQuantity, c.position(),
			fmt.Sprintf("%s is a quantity and is compared as text, where 1Gi is not 1024Mi",
				e.name()), "use type: Quantity")
		return
	}
	if index.Sorted && part.typ == sortkey.Any && (kinds[kindInteger] || kinds[kindNumber]) {
		c.fail(codeTextOrder, c.position(),
			fmt.Sprintf("%s is a number and is ordered as text, where 10 comes before 9",
				e.name()), typeHint(e.schema))
	}
}

// checkPartialType reports a type that only some values have, because an index silently omits the others.
func (c *checker) checkPartialType(p indexPart, ends []cursor) {
	for _, e := range ends {
		_, rejected := e.acceptsType(p.typ)
		if excluded, hint := valuesWithoutType(p.typ, e.scalarKind(), rejected); excluded != "" {
			c.fail(codeTypePartly, c.file.positionOf(p.typeNode),
				fmt.Sprintf("%s is %s, and %s left out of an index of type %s", e.name(), e.describeValues(),
					excluded, p.typ), hint)
			return
		}
	}
}

// valuesWithoutType describes the values of a kind that do not have a type, with a hint; "" if there are none
// known.
func valuesWithoutType(typ sortkey.Type, kind string, rejectedEnums []string) (description, hint string) {
	const removeType = "remove the type to index all values as text"
	switch {
	case typ == sortkey.Any:
		return "", ""
	case !slices.Contains(acceptedKinds[typ], kind): // other alternatives of the schema match
		return "that is", removeType
	case len(rejectedEnums) > 0:
		verb := " are"
		if len(rejectedEnums) == 1 {
			verb = " is"
		}
		return strings.Join(rejectedEnums, ", ") + verb, removeType
	case typ == sortkey.Int && kind == kindNumber:
		return "values with a fraction, such as 2.5, are", "use type: Number"
	case typ == sortkey.String && kind == kindIntOrString:
		return "the numbers are", removeType
	}
	return "", ""
}

// Kinds of values: scalar types of a schema, and special cases.
const (
	kindString      = "string"
	kindInteger     = "integer"
	kindNumber      = "number"
	kindBoolean     = "boolean"
	kindIntOrString = "int-or-string"
	kindTime        = "date-time"
)

var kindDescriptions = map[string]string{
	kindString: "text", kindBoolean: "a boolean", kindIntOrString: "a number or text", kindTime: "a time",
}

// acceptedKinds are the kinds that can have a type. Text can have nearly every type.
var acceptedKinds = map[sortkey.Type][]string{
	sortkey.String:   {kindString, kindTime, kindIntOrString},
	sortkey.Int:      {kindInteger, kindNumber, kindString, kindIntOrString},
	sortkey.Number:   {kindInteger, kindNumber, kindString, kindIntOrString},
	sortkey.Bool:     {kindBoolean, kindString, kindIntOrString},
	sortkey.Quantity: {kindInteger, kindNumber, kindString, kindIntOrString},
	sortkey.Duration: {kindString, kindIntOrString},
	sortkey.Time:     {kindString, kindTime, kindIntOrString},
	sortkey.IP:       {kindString, kindIntOrString},
	sortkey.SemVer:   {kindString, kindInteger, kindNumber, kindIntOrString},
	sortkey.Date:     {kindString, kindIntOrString},
	sortkey.CIDR:     {kindString, kindIntOrString},
}

// textFormats are text formats with values of one form: an example of each form and the best type. Other
// formats can have any text.
var textFormats = map[string]struct {
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

// acceptsType reports whether a value at the cursor can have a type. rejected are enum values that cannot.
func (c cursor) acceptsType(typ sortkey.Type) (acceptsSome bool, rejected []string) {
	kind := c.scalarKind()
	if !slices.Contains(acceptedKinds[typ], kind) {
		return false, nil
	}
	if len(c.schema.Enum) > 0 {
		for _, v := range c.schema.Enum {
			if _, ok := typ.Key(scalarOf(v).text); !ok {
				rejected = append(rejected, jsontext.Compact(v))
			}
		}
		return len(rejected) < len(c.schema.Enum), rejected
	}
	format, isKnown := textFormats[c.schema.Format]
	return kind != kindString || !isKnown || slices.ContainsFunc(format.examples, func(text string) bool {
		_, ok := typ.Key(text)
		return ok
	}), nil
}

// describeValues describes the values at the cursor as exactly as the schema does.
func (c cursor) describeValues() string {
	switch _, isKnown := textFormats[c.schema.Format]; {
	case len(c.schema.Enum) > 0:
		return "one of " + strings.Join(naming.Texts(c.schema.Enum, jsontext.Compact), ", ")
	case isKnown && c.schema.Type == kindString:
		return "text of the format " + c.schema.Format
	}
	return c.kind()
}

// scalarKind returns the kind of the values; "" if indexes cannot hold them.
func (c cursor) scalarKind() string {
	switch t := c.schema.Type; {
	case c.schema.IntOrString:
		return kindIntOrString
	case t == kindString && c.schema.Format == kindTime:
		return kindTime
	case t == kindString, t == kindInteger, t == kindNumber, t == kindBoolean:
		return t
	}
	return ""
}

func typeHint(s *crd.Schema) string {
	switch {
	case s.Type == "integer":
		return "use type: Int"
	case s.Type == "number":
		return "use type: Number"
	case s.Type == "boolean":
		return "use type: Bool"
	case s.Format == kindTime:
		return "use type: Time"
	}
	if format, isKnown := textFormats[s.Format]; isKnown && s.Type == kindString && len(s.Enum) == 0 {
		return "use type: " + format.typ.String()
	}
	return "use type: String, or none"
}
