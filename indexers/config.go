package indexers

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/indexers/internal/config"
	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// The only apiVersion and kind of a config.
const (
	APIVersion = config.APIVersion
	Kind       = config.Kind
)

// What an index is limited to unless the config says otherwise.
const (
	DefaultMaxValues     = config.DefaultMaxValues
	DefaultMaxValueBytes = config.DefaultMaxValueBytes
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

// Resource is a resource, how it is kept, and its indexes.
type Resource struct {
	// Config is the metadata.name of the IndexConfig that declares the resource.
	Config string
	// Name is unique among all configs that were parsed together.
	Name string
	// Match says which objects are meant.
	Match Match
	// Optional resources need not exist: [Config.Check] only warns when they do not.
	Optional bool
	// Storage, Prune, Namespaces and Selectors are for crdcache's own informers; those of client-go
	// have nothing to do with them. The defaults of the document are filled in.
	Storage    Storage
	Prune      Prune
	Namespaces Namespaces
	Selectors  Selectors
	// Indexes are in the order of the file. Their names are unique within the resource. A resource
	// may have none.
	Indexes []*Index
	// References say what the objects refer to, in the order of the file. Their names are unique within the
	// resource.
	References []*Reference

	declared *config.Resource
}

// LabelSelector is what Selectors.Labels means; nil for everything.
func (r *Resource) LabelSelector() labels.Selector { return r.declared.LabelSelector }

// FieldSelector is what Selectors.Fields means; nil for everything.
func (r *Resource) FieldSelector() fields.Selector { return r.declared.FieldSelector }

// Index returns the index of that name.
func (r *Resource) Index(name string) (*Index, bool) {
	for _, index := range r.Indexes {
		if index.Name == name {
			return index, true
		}
	}
	return nil, false
}

// Match names a resource, or by patterns any number of them. Exactly one of Resource and Kind is set.
type Match struct {
	// Group is "" for the core group. It may be a pattern, in which "*" stands for any run of
	// characters.
	Group string
	// Version is "" for the version that the server prefers when the resource is looked up.
	Version string
	// Versions is "preferred" to follow the preferred version when it changes, else "".
	Versions string
	// Resource is a plural name. It may be a pattern.
	Resource string
	Kind     string
}

// Storage says in which form objects are kept.
type Storage struct {
	// Mode is packed, compressed, adaptive, object or metadata; "" when the config leaves it open.
	Mode string
}

// Prune says what is cut out of objects before they are kept. Indexes are computed before that.
type Prune struct {
	// Presets are managedFields and lastApplied, in any number.
	Presets []string
	// Remove are paths to what is cut out.
	Remove []*jsonpath.Path
	// RemoveAnnotations are names of annotations.
	RemoveAnnotations []string
}

// Selectors are evaluated by the server. "" selects everything.
type Selectors struct{ Labels, Fields string }

// Pattern reports whether the match can mean several resources.
func (m Match) Pattern() bool { return config.Match(m).Pattern() }

// Matches reports whether the match means a resource with this group, plural name and kind.
func (m Match) Matches(group, resource, kind string) bool {
	return config.Match(m).Matches(group, resource, kind)
}

// Namespaces limits a resource to some namespaces. The zero value means all of them.
type Namespaces struct {
	// Include and Exclude hold names and patterns, in which "*" stands for any run of characters.
	// An empty Include stands for all.
	Include, Exclude []string
}

// All reports whether there is no limit.
func (n Namespaces) All() bool { return len(n.Include) == 0 && len(n.Exclude) == 0 }

// Matches reports whether a namespace is among those that are meant. What is excluded is so however
// it is included.
func (n Namespaces) Matches(namespace string) bool { return config.Namespaces(n).Matches(namespace) }

// EffectivePrune gives what is cut out of objects that are kept: what Prune says, without what an index
// reads, since an index could not be computed of an object that lacks it.
func (r *Resource) EffectivePrune() Prune {
	return Prune(config.Prune(r.Prune).Without(r.declared.AllIndexes()))
}

//go:generate go run ./internal/genschema ../docs/index-config.schema.json

// Schema gives a JSON Schema (draft 2020-12) of config files, for editors. It is made of the same Go types
// that the decoder takes its fields from. What it accepts can still be refused: it knows nothing of paths, of
// names that are taken, and of most fields that do not go together.
func Schema() []byte { return config.Schema() }
