package indexers

import (
	"fmt"
	"slices"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers/internal/sortkey"
)

// typed reports a type that no value of the path can have, and an order that is not the one of the
// values.
func (k *checking) typed(index *Index, p part, ends []cursor) {
	if len(ends) == 0 || len(p.transforms) > 0 {
		return
	}
	kinds := map[string]bool{}
	for _, e := range ends {
		kind := e.scalarKind()
		if kind == "" {
			return
		}
		kinds[kind] = true
	}
	e := ends[0]
	if takes := takenKinds[p.typ]; takes != nil && !slices.ContainsFunc(takes, func(kind string) bool { return kinds[kind] }) {
		k.fail(CodeTypeMismatch, k.resource.file.placeOf(p.typeAt), fmt.Sprintf("%s is %s, which is never of type %s", e.name(), e.kind(), p.typ), typeHint(e.schema))
	}
	if index.Sorted && p.typ == sortkey.Any && (kinds["integer"] || kinds["number"]) {
		k.fail(CodeTextOrder, k.at.place(k.resource.file, 0, 0, len(k.at.node.Value)), fmt.Sprintf("%s is a number and is ordered as text, where 10 comes before 9", e.name()), typeHint(e.schema))
	}
}

// takenKinds are the kinds of values that a type can be read from. Text can be nearly everything.
var takenKinds = map[sortkey.Type][]string{
	sortkey.String:   {"string"},
	sortkey.Int:      {"integer", "number", "string"},
	sortkey.Number:   {"integer", "number", "string"},
	sortkey.Bool:     {"boolean", "string"},
	sortkey.Quantity: {"integer", "number", "string"},
	sortkey.Duration: {"string"},
	sortkey.Time:     {"string"},
	sortkey.IP:       {"string"},
	sortkey.SemVer:   {"string", "integer", "number"},
}

// scalarKind is the type of the schema if it is one that values of indexes have.
func (c cursor) scalarKind() string {
	switch t := c.schema.Type; {
	case c.schema.IntOrString:
		return "string"
	case t == "string", t == "integer", t == "number", t == "boolean":
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
	case s.Format == "date-time":
		return "use type: time"
	}
	return "use type: string, or none"
}
