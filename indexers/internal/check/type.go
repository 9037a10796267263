package check

import (
	"fmt"
	"slices"

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
		never = never && !slices.Contains(takenKinds[p.Type], kind)
	}
	e := ends[0]
	if never {
		k.fail(config.CodeTypeMismatch, k.file.PlaceOf(p.TypeAt), fmt.Sprintf("%s is %s, which is never of type %s", e.name(), e.kind(), p.Type), typeHint(e.schema))
		return
	}
	k.partly(p, ends)
	if index.Sorted && p.Type == sortkey.Any && (kinds[kindInteger] || kinds[kindNumber]) {
		k.fail(config.CodeTextOrder, k.expression(), fmt.Sprintf("%s is a number and is ordered as text, where 10 comes before 9", e.name()), typeHint(e.schema))
	}
}

// partly reports a type that only some of the values of the path have: the others would be missed without a word.
func (k *checking) partly(p config.Part, ends []cursor) {
	for _, e := range ends {
		if left, hint := leftOut(p.Type, e.scalarKind()); left != "" {
			k.fail(config.CodeTypePartly, k.file.PlaceOf(p.TypeAt), fmt.Sprintf("%s is %s, and %s left out of an index of type %s", e.name(), e.kind(), left, p.Type), hint)
			return
		}
	}
}

// leftOut says which values of a kind are not of a type, with the way out; "" when there are none that one knows of.
func leftOut(typ sortkey.Type, kind string) (which, hint string) {
	const anything = "leave out the type, which takes all values as text"
	switch {
	case typ == sortkey.Any:
		return "", ""
	case !slices.Contains(takenKinds[typ], kind): // beside others that are
		return "that is", anything
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
	return "use type: string, or none"
}
