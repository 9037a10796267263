package indexers

import (
	"slices"

	yaml "go.yaml.in/yaml/v3"

	"github.com/crdcache/crdcache/indexers/internal/sortkey"
	"github.com/crdcache/crdcache/internal/expression"
	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/naming"
)

// Index is one index of a resource.
type Index struct {
	// Name is the name for ByIndex.
	Name string
	// Keys are the names of the parts of a composite index, in order; nil for an index over one path.
	Keys []string
	// Sorted indexes support ranges, prefixes and sorting.
	Sorted bool

	parts []indexPart
	// each is the path to the elements at which the parts' paths start; nil for an index over the whole
	// object. unreadable means that it has an error, so that the start of the paths is unknown.
	each *jsonpath.Path
	// eachOfLists means that the elements of a list at each are read, instead of the list.
	eachOfLists bool
	// containers is the path of the maps whose members are the elements of a metric; nil for other elements.
	containers    *jsonpath.Path
	eachOrigin    origin
	unreadable    bool
	when          *jsonpath.Filter
	whenCEL       expression.Expression // instead of when
	whenOrigin    origin
	maxValues     int
	maxValueBytes int
	// combine names the combination of the values of an object with equal other parts; "" without numbers.
	combine string

	// The fields below are derived from the fields above; see finish.

	// elementPaths begin at the element, or at the object if each is nil. rootPaths begin at the object if
	// each is set.
	elementPaths, rootPaths []jsonpath.Expr
	elements                *jsonpath.Set // of elementPaths, if each is set
	multiValuedPart         int           // the multi-valued part, or -1
	label                   string        // see indexedLabel
	fields                  []string
}

// deriveFields computes the derived fields of an index without errors.
func (i *Index) deriveFields() {
	i.multiValuedPart = -1
	for n := range i.parts {
		if !i.parts[n].singular() {
			i.multiValuedPart = n
		}
		for s := range i.parts[n].sources {
			source, paths := &i.parts[n].sources[s], &i.elementPaths
			if source.root {
				paths = &i.rootPaths
			}
			source.number = len(*paths)
			*paths = append(*paths, source.path)
		}
	}
	if i.each != nil {
		i.elements = jsonpath.NewSet(i.elementPaths...)
	}
	i.fields = slices.Concat(naming.Map(i.readPaths(), readPath.Fields)...)
	i.label = indexedLabel(i)
}

// complete reports whether the index was compiled without errors.
func (i *Index) complete() bool {
	lacksSource := func(p indexPart) bool { return len(p.sources) == 0 && p.cel == nil && !p.constant }
	return len(i.parts) > 0 && !i.unreadable && !slices.ContainsFunc(i.parts, lacksSource)
}

// Types returns the types of the parts in order, such as "Time"; "" means any scalar, compared as text. An
// index over one path has one part.
func (i *Index) Types() []string {
	return naming.Texts(i.parts, func(p indexPart) string { return p.typ.String() })
}

// TypeAt returns the type of an index over exactly this path, in its canonical form and without transforms;
// "" for other indexes.
func (i *Index) TypeAt(path string) string {
	if p := i.parts[0]; i.Composite() || i.each != nil || len(p.sources) != 1 || len(p.transforms) > 0 ||
		p.sources[0].path.String() != path {
		return ""
	}
	return i.parts[0].typ.String()
}

// Fields returns the fields that the index reads, in the syntax of dynamicinformer.Informer.Drops.
func (i *Index) Fields() []string { return slices.Clone(i.fields) }

// Composite reports whether values have several parts.
func (i *Index) Composite() bool { return len(i.parts) > 1 }

// Single reports whether an object has at most one value.
func (i *Index) Single() bool { return i.multiValuedPart < 0 && (i.each == nil || i.each.Singular()) }

// origin returns the origin of the first path or expression of a complete index.
func (i *Index) origin() origin {
	for n := range i.parts {
		if at := i.parts[n].origin(); at.node != nil {
			return at
		}
	}
	return i.eachOrigin
}

// indexPart is one key of an index.
type indexPart struct {
	name string
	// sources are the possible locations of the values; the first one with a value counts. Empty after an
	// error.
	sources []valuePath
	// cel gives the values instead of sources. It is evaluated on the object, also if the index has each.
	cel       expression.Expression
	celOrigin origin
	// single means that a list is not a value, of cel or of a path.
	single bool
	// label means that the part is Null without a value, because a label never removes a series.
	label bool
	// constant means that the part has no sources, but the value of missing for every object.
	constant   bool
	typ        sortkey.Type
	typeNode   *yaml.Node
	transforms []transform
	missing    missingRule
}

// origin returns the origin of the part's expression or first path.
func (p *indexPart) origin() origin {
	for _, s := range p.sources {
		if s.origin.node != nil {
			return s.origin
		}
	}
	return p.celOrigin
}

// valuePath is a path to values of a part.
type valuePath struct {
	path *jsonpath.Path
	// root means that the path begins at the object although the index has each.
	root   bool
	origin origin
	kind   sourceKind
	// first means that only the first value counts, of a path that can have several.
	first bool
	// number is the number of the path in Index.rootPaths or Index.elementPaths.
	number int
}

type sourceKind uint8

const (
	readScalar sourceKind = iota
	// readElementKey reads the key of the element in its map.
	readElementKey
	// readEntries reads the keys and values of a map as one text.
	readEntries
	// readPrinted and readPrintedEntries are readScalar and readEntries with values as Go prints them, also
	// lists and maps.
	readPrinted
	readPrintedEntries
)

// read converts a decoded value.
func (k sourceKind) read(v any) scalar {
	switch k {
	case readEntries:
		return entriesOf(v, scalarOf)
	case readPrinted:
		if v != nil {
			return printedScalar(v)
		}
	case readPrintedEntries:
		return entriesOf(v, printedScalar)
	}
	return scalarOf(v)
}

// singular reports whether the part has at most one value in an object or element.
func (p *indexPart) singular() bool {
	if p.cel != nil && !p.single {
		kind := p.cel.Result()
		return kind == expression.Bool || kind == expression.Scalar
	}
	return !slices.ContainsFunc(p.sources, func(s valuePath) bool { return !s.first && !s.path.Singular() })
}

// encode returns the key of a text: a sortable key for sorted indexes, otherwise the canonical text.
func (p *indexPart) encode(text string, sorted bool) (string, bool) {
	switch {
	case p.typ.IsText():
		return text, true
	case sorted:
		return p.typ.Key(text)
	}
	return p.typ.Canonical(text)
}

// applyTransforms applies all transforms. ok is false if there is no value, tooLong is true if the input is
// too long for a transform.
func (p *indexPart) applyTransforms(s string) (value string, ok, tooLong bool) {
	for i := range p.transforms {
		t := &p.transforms[i]
		if t.maxInput > 0 && len(s) > t.maxInput {
			return "", false, true
		}
		if s, ok = t.apply(s); !ok {
			return "", false, false
		}
	}
	return s, true, false
}

type missingRule struct {
	kind  missingKind
	value string     // for missingValue, as written
	node  *yaml.Node // for missingValue
}

type missingKind uint8

// Values of missing: in a config.
const (
	missingSkip missingKind = iota
	missingNull
	missingValue
	missingReport
)

type origin struct {
	node          *yaml.Node
	wholeNodeOnly bool // the expression is derived; only the whole node can be shown
}

// position returns the position of a range of bytes in the expression.
func (o origin) position(f *sourceFile, offset, end int) position {
	if o.wholeNodeOnly {
		return f.positionOf(o.node)
	}
	return f.scalarRange(o.node, offset, end)
}
