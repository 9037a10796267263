package config

import (
	"slices"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"

	"github.com/crdcache/crdcache/indexers/internal/sortkey"
	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// Index is an index as it is declared. The fields that indexers.Index has too mean the same.
type Index struct {
	Name           string
	Keys           []string
	Sorted, Unique bool

	Parts []Part
	// Unreadable says that it is not known where the paths of the parts start: each could not be read.
	Unreadable bool
	// Each leads to the elements that the paths of the parts start at; nil for an index over the whole
	// object.
	Each          *jsonpath.Path
	EachAt        Origin
	When          *jsonpath.Filter
	WhenAt        Origin
	MaxValues     int
	MaxValueBytes int
}

// Complete reports whether everything about the index could be read.
func (i *Index) Complete() bool {
	for n := range i.Parts {
		if len(i.Parts[n].Sources) == 0 && !i.Parts[n].Constant {
			return false
		}
	}
	return len(i.Parts) > 0 && !i.Unreadable
}

// Origin is where the first path to values of a complete index is written.
func (i *Index) Origin() Origin {
	for n := range i.Parts {
		for _, s := range i.Parts[n].Sources {
			if s.At.Node != nil {
				return s.At
			}
		}
	}
	return i.EachAt
}

// Part is one key of an index.
type Part struct {
	Name string
	// Sources are where the values may be, of which the first that has any counts; none when they could not
	// be read.
	Sources []Source
	// Constant says that the part has no sources, but the value that Missing says in every object.
	Constant   bool
	Type       sortkey.Type
	TypeAt     *yaml.Node
	Transforms []Transform
	Missing    Missing
}

// Source is a path to values of a part.
type Source struct {
	Path *jsonpath.Path
	// Root says that the path begins at the object although the index is over elements.
	Root bool
	// Default says that the path is what stands for a missing value.
	Default bool
	At      Origin
}

// Singular reports whether the part has at most one value in an object, or in an element.
func (p *Part) Singular() bool {
	return !slices.ContainsFunc(p.Sources, func(s Source) bool { return !s.Path.Singular() })
}

// Encode gives the key of a text: of sorted indexes, in its order; of others, the canonical text.
func (p *Part) Encode(text string, sorted bool) (string, bool) {
	switch {
	case p.Type.Text():
		return text, true
	case sorted:
		return p.Type.Key(text)
	}
	return p.Type.Canonical(text)
}

// Transformed returns the value after all transforms: ok is false if they leave none, and long is true if the
// value is too long for one of them.
func (p *Part) Transformed(s string) (value string, ok, long bool) {
	for i := range p.Transforms {
		t := &p.Transforms[i]
		if t.MaxInput > 0 && len(s) > t.MaxInput {
			return "", false, true
		}
		if s, ok = t.Apply(s); !ok {
			return "", false, false
		}
	}
	return s, true, false
}

// Missing says what stands for a value that an object does not have.
type Missing struct {
	Kind  MissingKind
	Value string     // of MissingValue, as it is written
	At    *yaml.Node // of MissingValue
}

// MissingKind is what missing: says.
type MissingKind uint8

// The kinds of Missing.
const (
	MissingSkip MissingKind = iota
	MissingNull
	MissingValue
	MissingReport
)

// Origin is where an expression is written.
type Origin struct {
	Node     *yaml.Node
	segments []*yaml.Node // of a path that is a list
	whole    bool         // the expression is derived, so that only the node as a whole can be shown
	text     bool         // the expression is not YAML but all of the file, on one line
}

// OfText is the origin of an expression that is all of a file; see [NewLine].
func OfText(text string) Origin {
	return Origin{Node: &yaml.Node{Kind: yaml.ScalarNode, Value: text, Line: 1, Column: 1}, text: true}
}

// Place gives where the part of the expression from offset to end is written; step is the number of
// the step that it belongs to.
func (o Origin) Place(f *File, step, offset, end int) Place {
	switch {
	case step < len(o.segments):
		return f.PlaceOf(o.segments[step])
	case o.whole || o.segments != nil:
		return f.PlaceOf(o.Node)
	case o.text:
		text := o.Node.Value
		return Place{Line: 1, Column: utf8.RuneCountInString(text[:offset]) + 1,
			Length: utf8.RuneCountInString(text[offset:end])}
	}
	return f.Within(o.Node, offset, end)
}
