package indexers

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/indexers/internal/config"
	"github.com/crdcache/crdcache/internal/jsonpath"
)

// The apiVersion and kind of a config.
const (
	APIVersion = config.APIVersion
	Kind       = config.Kind
)

// IsDeprecated reports whether an apiVersion is deprecated. It can still be read.
func IsDeprecated(apiVersion string) bool { return config.IsDeprecated(apiVersion) }

// Convert returns a config with a deprecated apiVersion, which [Parse] accepts, in the current version. It
// keeps comments, and the layout unless fields had to be replaced.
func Convert(data []byte) ([]byte, error) { return config.Convert(data) }

// Default limits of an index.
const (
	DefaultMaxValues     = config.DefaultMaxValues
	DefaultMaxValueBytes = config.DefaultMaxValueBytes
)

// Config is the parsed content of one or more files. It is immutable and safe for concurrent use; callers
// must not change it.
type Config struct {
	// Resources are in the order of the files. Their names are unique.
	Resources []*Resource
	// Warnings are findings that are not errors.
	Warnings []Diagnostic
}

// Resource returns the resource of a name.
func (c *Config) Resource(name string) (*Resource, bool) {
	for _, r := range c.Resources {
		if r.Name == name {
			return r, true
		}
	}
	return nil, false
}

// Resource configures the objects of a type, or of several types by patterns: storage, scope and indexes.
type Resource struct {
	// Config is the metadata.name of the IndexConfig that declares the resource.
	Config string
	// Name is unique among all configs that were parsed together.
	Name string
	// Match selects the types.
	Match Match
	// Optional resources need not exist: [Config.Check] only warns if they are missing.
	Optional bool
	// Storage, Prune, Keep, Namespaces and Selectors configure crdcache's own informers; client-go's ignore
	// them. Defaults are filled in.
	Storage    Storage
	Prune      Prune
	Keep       Keep
	Namespaces Namespaces
	Selectors  Selectors
	// Indexes are in the order of the file, with unique names within the resource. Can be empty.
	Indexes []*Index
	// References are in the order of the file, with unique names within the resource.
	References []*Reference

	declared *config.Resource
}

// LabelSelector returns the parsed Selectors.Labels; nil selects everything.
func (r *Resource) LabelSelector() labels.Selector { return r.declared.LabelSelector }

// FieldSelector returns the parsed Selectors.Fields; nil selects everything.
func (r *Resource) FieldSelector() fields.Selector { return r.declared.FieldSelector }

// Index returns the index of a name.
func (r *Resource) Index(name string) (*Index, bool) {
	for _, index := range r.Indexes {
		if index.Name == name {
			return index, true
		}
	}
	return nil, false
}

// Match selects a resource, or several by patterns. Exactly one of Resource and Kind is set.
type Match struct {
	// Group is "" for the core group. It may be a pattern; "*" matches any characters.
	Group string
	// Version is "" for the server's preferred version at lookup time.
	Version string
	// Resource is a plural name or a pattern.
	Resource string
	Kind     string
}

// Storage is the form in which objects are stored.
type Storage struct {
	// Mode is packed, compressed, adaptive, object or metadata; "" if the config does not set it.
	Mode string
}

// Prune lists the fields that are removed from objects before they are stored. Indexes are computed before.
type Prune struct {
	// Presets are managedFields and lastApplied, or one of them.
	Presets []string
	// Remove are the paths to remove, of names and [*], in the path language.
	Remove []string
}

// Keep lists the fields to store, in addition to the fields that are stored of every object: see
// dynamicinformer.Keep. It cannot be combined with Prune.
type Keep struct {
	// Paths are of names and [*], in the path language. Nil keeps all fields.
	Paths []string
}

// Selectors are evaluated by the server. "" selects everything.
type Selectors struct{ Labels, Fields string }

// Pattern reports whether the match can select several resources.
func (m Match) Pattern() bool { return config.Match(m).Pattern() }

// Matches reports whether the match selects a resource with this group, plural name and kind.
func (m Match) Matches(group, resource, kind string) bool {
	return config.Match(m).Matches(group, resource, kind)
}

// Namespaces limits a resource to some namespaces. The zero value means all of them.
type Namespaces struct {
	// Include and Exclude hold names and patterns; "*" matches any characters. An empty Include means all.
	Include, Exclude []string
}

// All reports whether all namespaces are selected.
func (n Namespaces) All() bool { return len(n.Include) == 0 && len(n.Exclude) == 0 }

// Matches reports whether a namespace is selected. Exclude takes precedence over Include.
func (n Namespaces) Matches(namespace string) bool { return config.Namespaces(n).Matches(namespace) }

// EffectivePrune returns Prune without the fields that an index reads: the index could not be computed from
// stored objects that lack them.
func (r *Resource) EffectivePrune() Prune {
	return newPrune(r.declared.Prune.Without(r.declared.AllIndexes()))
}

// EffectiveKeep returns Keep with the fields that indexes and references read.
func (r *Resource) EffectiveKeep() Keep {
	return newKeep(r.declared.Keep.With(r.declared.AllIndexes()))
}

func newKeep(paths []*jsonpath.Path) Keep {
	if paths == nil {
		return Keep{}
	}
	k := Keep{Paths: []string{}}
	for _, path := range paths {
		k.Paths = append(k.Paths, path.String())
	}
	return k
}

func newPrune(p config.Prune) Prune {
	out := Prune{Presets: p.Presets}
	for _, path := range p.Remove {
		out.Remove = append(out.Remove, path.String())
	}
	return out
}

// Schema returns a JSON Schema (draft 2020-12) of config files for editors. It is generated from the Go types
// of the decoder. It is more lenient than [Parse]: it does not check paths, duplicate names and most
// combinations of fields.
func Schema() []byte { return config.Schema() }
