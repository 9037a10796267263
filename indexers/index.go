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

	parts []config.Part
	each  *jsonpath.Path // nil for an index over the whole object
	// inner are the paths of the parts from the element on, or from the object without each; root those from
	// the object on in spite of each. sources says which of them belong to which part.
	inner, root   []jsonpath.Expr
	sources       [][]source
	elements      *jsonpath.Set // of inner, with each
	many          int           // the part that can have several values, or -1
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
	i.many, i.sources = -1, make([][]source, len(i.parts))
	for n := range i.parts {
		if !i.parts[n].Singular() {
			i.many = n
		}
		for _, s := range i.parts[n].Sources {
			paths := &i.inner
			if s.Root {
				paths = &i.root
			}
			i.sources[n] = append(i.sources[n], source{s.Path, s.Root, len(*paths)})
			*paths = append(*paths, s.Path)
		}
	}
	if i.each != nil {
		i.elements = jsonpath.NewSet(i.inner...)
	}
	i.label = labelOf(i)
	return i
}

// source is where the values of a part may be: path number at of those from the object on, or of the others.
type source struct {
	path *jsonpath.Path
	root bool
	at   int
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

// TypeAt returns the type of an index whose values are those at a path, unchanged; "" for other indexes.
func (i *Index) TypeAt(path *jsonpath.Path) string {
	if len(i.parts) != 1 || i.each != nil || len(i.sources[0]) != 1 || len(i.parts[0].Transforms) > 0 ||
		i.sources[0][0].path.String() != path.String() {
		return ""
	}
	return i.parts[0].Type.String()
}

// Composite reports whether values are made of several parts.
func (i *Index) Composite() bool { return len(i.parts) > 1 }

// Single reports whether an object has at most one value.
func (i *Index) Single() bool {
	return i.many < 0 && (i.each == nil || i.each.Singular())
}
