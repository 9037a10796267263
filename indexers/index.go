package indexers

import (
	"github.com/crdcache/crdcache/indexers/internal/config"
	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// Index is one index of a resource.
type Index struct {
	// Name is what to give to ByIndex.
	Name string
	// Keys are the names of the parts of a composite index, in order; nil for an index over one path.
	Keys []string
	// Sorted indexes have an order: they can be asked for ranges and beginnings, and results can be
	// sorted by them.
	Sorted bool
	// Unique is set when no two objects should have the same value.
	Unique bool

	parts         []config.Part
	each          *jsonpath.Path // nil for an index over the whole object
	elements      *jsonpath.Set  // the paths of the parts, with each
	when          *jsonpath.Filter
	label         string // see labelOf
	maxValues     int
	maxValueBytes int
}

// newIndex makes an index of what is declared without errors.
func newIndex(d *config.Index) *Index {
	i := &Index{
		Name: d.Name, Keys: d.Keys, Sorted: d.Sorted, Unique: d.Unique,
		parts: d.Parts, each: d.Each, when: d.When, maxValues: d.MaxValues, maxValueBytes: d.MaxValueBytes,
	}
	if i.each != nil {
		paths := make([]jsonpath.Expr, len(i.parts))
		for n := range i.parts {
			paths[n] = i.parts[n].Path
		}
		i.elements = jsonpath.NewSet(paths...)
	}
	i.label = labelOf(i)
	return i
}

// Types gives the types of the parts, in order, such as "time"; "" stands for any text, number or
// boolean, compared as text. An index over one path has one part.
func (i *Index) Types() []string {
	types := make([]string, len(i.parts))
	for n := range i.parts {
		types[n] = i.parts[n].Type.String()
	}
	return types
}

// Composite reports whether values are made of several parts.
func (i *Index) Composite() bool { return len(i.parts) > 1 }

// Single reports whether an object has at most one value.
func (i *Index) Single() bool {
	if i.each != nil {
		return i.each.Singular()
	}
	for n := range i.parts {
		if !i.parts[n].Path.Singular() {
			return false
		}
	}
	return true
}
