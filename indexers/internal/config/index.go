package config

import (
	"slices"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"

	"github.com/crdcache/crdcache/indexers/internal/sortkey"
	"github.com/crdcache/crdcache/internal/jsonpath"
)

// Index is a declared index. See indexers.Index for the fields that both have.
type Index struct {
	Name   string
	Keys   []string
	Sorted bool

	Parts []Part
	// Unreadable means that each has an error, so that the start of the parts' paths is unknown.
	Unreadable bool
	// Each is the path to the elements at which the parts' paths start; nil for an index over the whole
	// object.
	Each          *jsonpath.Path
	EachOrigin    Origin
	When          *jsonpath.Filter
	WhenOrigin    Origin
	MaxValues     int
	MaxValueBytes int
}

// Complete reports whether the index has no errors.
func (i *Index) Complete() bool {
	for n := range i.Parts {
		if len(i.Parts[n].Sources) == 0 && !i.Parts[n].Constant {
			return false
		}
	}
	return len(i.Parts) > 0 && !i.Unreadable
}

// Origin returns the origin of the first path of a complete index.
func (i *Index) Origin() Origin {
	for n := range i.Parts {
		for _, s := range i.Parts[n].Sources {
			if s.Origin.Node != nil {
				return s.Origin
			}
		}
	}
	return i.EachOrigin
}

// Part is one key of an index.
type Part struct {
	Name string
	// Sources are the possible locations of the values; the first one with a value counts. Empty after an
	// error.
	Sources []Source
	// Constant means that the part has no sources, but the value of Missing for every object.
	Constant   bool
	Type       sortkey.Type
	TypeNode   *yaml.Node
	Transforms []Transform
	Missing    Missing
}

// Source is a path to values of a part.
type Source struct {
	Path *jsonpath.Path
	// Root means that the path begins at the object although the index has each.
	Root   bool
	Origin Origin
}

// Singular reports whether the part has at most one value in an object or element.
func (p *Part) Singular() bool {
	return !slices.ContainsFunc(p.Sources, func(s Source) bool { return !s.Path.Singular() })
}

// Encode returns the key of a text: a sortable key for sorted indexes, otherwise the canonical text.
func (p *Part) Encode(text string, sorted bool) (string, bool) {
	switch {
	case p.Type.IsText():
		return text, true
	case sorted:
		return p.Type.Key(text)
	}
	return p.Type.Canonical(text)
}

// ApplyTransforms applies all transforms. ok is false if there is no value, tooLong is true if the input is
// too long for a transform.
func (p *Part) ApplyTransforms(s string) (value string, ok, tooLong bool) {
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

// Missing is the replacement for missing values.
type Missing struct {
	Kind  MissingKind
	Value string     // for MissingValue, as written
	Node  *yaml.Node // for MissingValue
}

type MissingKind uint8

// Values of missing: in a config.
const (
	MissingSkip MissingKind = iota
	MissingNull
	MissingValue
	MissingReport
)

// Origin is the origin of an expression in a file.
type Origin struct {
	Node          *yaml.Node
	segments      []*yaml.Node // for a path written as a list
	wholeNodeOnly bool         // the expression is derived; only the whole node can be shown
	plainFile     bool         // the expression is the whole file of one line, not YAML
}

// OriginOfText returns the origin of an expression that is a whole file; see [NewLine].
func OriginOfText(text string) Origin {
	return Origin{Node: &yaml.Node{Kind: yaml.ScalarNode, Value: text, Line: 1, Column: 1}, plainFile: true}
}

// Position returns the position of a range of bytes in the expression; step is the number of its step.
func (o Origin) Position(f *File, step, offset, end int) Position {
	switch {
	case step < len(o.segments):
		return f.PositionOf(o.segments[step])
	case o.wholeNodeOnly || o.segments != nil:
		return f.PositionOf(o.Node)
	case o.plainFile:
		text := o.Node.Value
		return Position{Line: 1, Column: utf8.RuneCountInString(text[:offset]) + 1,
			Length: utf8.RuneCountInString(text[offset:end])}
	}
	return f.Within(o.Node, offset, end)
}
