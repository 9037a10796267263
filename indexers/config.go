package indexers

import (
	yaml "go.yaml.in/yaml/v3"

	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// The only apiVersion and kind of a config.
const (
	APIVersion = "crdcache.dev/v1alpha1"
	Kind       = "IndexConfig"
)

// What an index is limited to unless the config says otherwise.
const (
	DefaultMaxValues     = 64
	DefaultMaxValueBytes = 1024
)

// Config is what one or more files declare. It never changes after it was parsed and may be used
// from any number of goroutines; callers must not change it either.
type Config struct {
	// Resources are in the order of the files. Their names are unique.
	Resources []*Resource
	// Warnings are what is legal but may not be what was meant.
	Warnings []Diagnostic
}

// Resource returns the resource of that name.
func (c *Config) Resource(name string) (*Resource, bool) {
	for _, r := range c.Resources {
		if r.Name == name {
			return r, true
		}
	}
	return nil, false
}

// Resource is a resource and its indexes.
type Resource struct {
	// Config is the metadata.name of the IndexConfig that declares the resource.
	Config string
	// Name is unique among all configs that were parsed together.
	Name string
	// Match says which objects are meant.
	Match Match
	// Optional resources need not exist: [Config.Check] only warns when they do not.
	Optional bool
	// Indexes are in the order of the file. Their names are unique within the resource.
	Indexes []*Index

	file    *file
	matchAt matchPlaces
}

// Match names a resource. Exactly one of Resource and Kind is set.
type Match struct {
	// Group is "" for the core group.
	Group string
	// Version is "" for the version that the server prefers.
	Version  string
	Resource string
	Kind     string
}

// matchPlaces is where the parts of a match are written.
type matchPlaces struct{ group, version, name place }

// Index is one index of a resource.
type Index struct {
	// Name is what to give to ByIndex.
	Name string
	// Keys are the names of the parts that [Value] joins, in order; nil for an index over one path.
	Keys []string

	parts         []part
	each          *jsonpath.Path // nil for an index over the whole object
	eachAt        origin
	when          *jsonpath.Filter
	whenAt        origin
	maxValues     int
	maxValueBytes int
}

// part is one key of an index.
type part struct {
	name       string
	path       *jsonpath.Path
	at         origin
	transforms []transform
	missing    missing
}

// missing says what stands for a value that an object does not have.
type missing struct {
	kind  missingKind
	value string // of missingValue
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
}

// place gives where the part of the expression from offset to end is written; step is the number of
// the step that it belongs to.
func (o origin) place(f *file, step, offset, end int) place {
	switch {
	case step < len(o.segments):
		return f.placeOf(o.segments[step])
	case o.whole || o.segments != nil:
		return f.placeOf(o.node)
	}
	return f.within(o.node, offset, end)
}
