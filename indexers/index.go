package indexers

import (
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"

	"github.com/crdcache/crdcache/indexers/internal/sortkey"
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

	parts         []part
	each          *jsonpath.Path // nil for an index over the whole object
	eachAt        origin
	elements      *jsonpath.Set // the paths of the parts, with each
	when          *jsonpath.Filter
	whenAt        origin
	label         string // see labelOf
	maxValues     int
	maxValueBytes int
}

// Types gives the types of the parts, in order, such as "time"; "" stands for any text, number or
// boolean, compared as text. An index over one path has one part.
func (i *Index) Types() []string {
	types := make([]string, len(i.parts))
	for n := range i.parts {
		types[n] = i.parts[n].typ.String()
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
		if !i.parts[n].path.Singular() {
			return false
		}
	}
	return true
}

// complete reports whether everything about the index could be read.
func (i *Index) complete() bool {
	for n := range i.parts {
		if i.parts[n].path == nil {
			return false
		}
	}
	return len(i.parts) > 0
}

// part is one key of an index.
type part struct {
	name       string
	path       *jsonpath.Path
	at         origin
	typ        sortkey.Type
	typeAt     *yaml.Node
	transforms []transform
	missing    missing
}

// missing says what stands for a value that an object does not have.
type missing struct {
	kind  missingKind
	value string     // of missingValue, as it is written
	at    *yaml.Node // of missingValue
}

type missingKind uint8

const (
	missingSkip missingKind = iota
	missingNull
	missingValue
	missingReport
)

// origin is where an expression is written.
type origin struct {
	node     *yaml.Node
	segments []*yaml.Node // of a path that is a list
	whole    bool         // the expression is derived, so that only the node as a whole can be shown
	text     bool         // the expression is no YAML but all of the file, on one line
}

// place gives where the part of the expression from offset to end is written; step is the number of
// the step that it belongs to.
func (o origin) place(f *file, step, offset, end int) place {
	switch {
	case step < len(o.segments):
		return f.placeOf(o.segments[step])
	case o.whole || o.segments != nil:
		return f.placeOf(o.node)
	case o.text:
		text := o.node.Value
		return place{line: 1, column: utf8.RuneCountInString(text[:offset]) + 1, length: utf8.RuneCountInString(text[offset:end])}
	}
	return f.within(o.node, offset, end)
}
