package indexers

import (
	"slices"

	"github.com/crdcache/crdcache/indexers/internal/config"
	"github.com/crdcache/crdcache/internal/jsonpath"
)

// Index is one index of a resource.
type Index struct {
	// Name is the name for ByIndex.
	Name string
	// Keys are the names of the parts of a composite index, in order; nil for an index over one path.
	Keys []string
	// Sorted indexes support ranges, prefixes and sorting.
	Sorted bool

	parts       []config.Part
	elementPath *jsonpath.Path // nil for an index over the whole object
	// elementPaths begin at the element, or at the object if elementPath is nil. rootPaths begin at the
	// object if elementPath is set. sources are the locations of each part's values.
	elementPaths, rootPaths []jsonpath.Expr
	sources                 [][]valueLocation
	elements                *jsonpath.Set // of elementPaths, with elementPath
	multiValuedPart         int           // the multi-valued part, or -1
	when                    *jsonpath.Filter
	label                   string // see indexedLabel
	fields                  []string
	maxValues               int
	maxValueBytes           int
}

// newIndex returns the index of a valid declaration.
func newIndex(d *config.Index) *Index {
	i := &Index{
		Name: d.Name, Keys: d.Keys, Sorted: d.Sorted,
		parts: d.Parts, elementPath: d.Each, when: d.When, maxValues: d.MaxValues,
		maxValueBytes: d.MaxValueBytes, fields: d.Fields(),
	}
	i.multiValuedPart, i.sources = -1, make([][]valueLocation, len(i.parts))
	for n := range i.parts {
		if !i.parts[n].Singular() {
			i.multiValuedPart = n
		}
		for _, s := range i.parts[n].Sources {
			paths := &i.elementPaths
			if s.Root {
				paths = &i.rootPaths
			}
			i.sources[n] = append(i.sources[n], valueLocation{s.Path, s.Root, len(*paths)})
			*paths = append(*paths, s.Path)
		}
	}
	if i.elementPath != nil {
		i.elements = jsonpath.NewSet(i.elementPaths...)
	}
	i.label = indexedLabel(i)
	return i
}

// valueLocation is a possible location of a part's values: path number resultIndex of Index.rootPaths or
// Index.elementPaths.
type valueLocation struct {
	path        *jsonpath.Path
	root        bool
	resultIndex int
}

// Types returns the types of the parts in order, such as "time"; "" means any scalar, compared as text. An
// index over one path has one part.
func (i *Index) Types() []string {
	types := make([]string, len(i.parts))
	for n := range i.parts {
		types[n] = i.parts[n].Type.String()
	}
	return types
}

// TypeAt returns the type of an index over exactly this path, in its canonical form and without transforms;
// "" for other indexes.
func (i *Index) TypeAt(path string) string {
	if len(i.parts) != 1 || i.elementPath != nil || len(i.sources[0]) != 1 ||
		len(i.parts[0].Transforms) > 0 || i.sources[0][0].path.String() != path {
		return ""
	}
	return i.parts[0].Type.String()
}

// Fields returns the fields that the index reads, in the syntax of dynamicinformer.Informer.Drops.
func (i *Index) Fields() []string { return slices.Clone(i.fields) }

// Composite reports whether values have several parts.
func (i *Index) Composite() bool { return len(i.parts) > 1 }

// Single reports whether an object has at most one value.
func (i *Index) Single() bool {
	return i.multiValuedPart < 0 && (i.elementPath == nil || i.elementPath.Singular())
}
