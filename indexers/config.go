package indexers

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/naming"
)

// The apiVersion and kind of a config.
const (
	APIVersion = "crdcache.dev/v1beta1"
	Kind       = "IndexConfig"
)

// Default limits of an index.
const (
	DefaultMaxValues     = 64
	DefaultMaxValueBytes = 1024
)

// Config is the parsed content of one or more files. It is immutable and safe for concurrent use; callers
// must not change it.
type Config struct {
	// Resources are in the order of the files. Their names are unique.
	Resources []*Resource
	// Warnings are findings that are not errors.
	Warnings []Diagnostic

	digest string
}

// Digest returns a hash of the content of the files. It does not depend on their names and order.
func (c *Config) Digest() string { return c.digest }

// Resource returns the resource with a name.
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
	// Metrics are in the order of the file.
	Metrics []*Metric

	pruned prunedFields
	// wholeCondition is Keep.WholeWhen or Keep.WholeCEL, as the condition of an index without values. It is
	// nil if neither is set.
	wholeCondition *Index
	labelSelector  labels.Selector
	fieldSelector  fields.Selector
	file           *sourceFile
	positions      matchPositions
}

// matchPositions are the positions of the fields of a match, of the field selector, and of the setting that
// drops fields.
type matchPositions struct{ group, version, name, fieldSelector, dropped position }

// LabelSelector returns the parsed Selectors.Labels; nil selects everything.
func (r *Resource) LabelSelector() labels.Selector { return r.labelSelector }

// FieldSelector returns the parsed Selectors.Fields; nil selects everything.
func (r *Resource) FieldSelector() fields.Selector { return r.fieldSelector }

// CacheIndexes returns the indexes that an informer needs: Indexes, and the indexes of metrics that do not
// use one of Indexes.
func (r *Resource) CacheIndexes() []*Index {
	indexes := slices.Clone(r.Indexes)
	for _, m := range r.Metrics {
		if m.ownsIndex {
			indexes = append(indexes, m.Index)
		}
	}
	return indexes
}

// allIndexes returns CacheIndexes and the indexes of references.
func (r *Resource) allIndexes() []*Index {
	indexes := r.CacheIndexes()
	for _, reference := range r.References {
		indexes = append(indexes, reference.Index)
	}
	return indexes
}

// Index returns the index with a name.
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
	// Mode is the text of a dynamicinformer.StorageMode, but begins with a capital, such as Packed; "" if the
	// config does not set it.
	Mode string
}

// Prune lists the fields that are removed from objects before they are stored. Indexes are computed before.
type Prune struct {
	// Presets are ManagedFields and LastApplied, or one of them.
	Presets []string
	// Remove are the paths to remove, as in dynamicinformer.Prune.Paths.
	Remove []string
}

// Keep lists the fields to store, in addition to the fields that are stored of every object: see
// dynamicinformer.Keep. It cannot be combined with Prune.
type Keep struct {
	// Paths are as in dynamicinformer.Keep.Paths. Nil keeps all fields.
	Paths []string
	// WholeLabels is a label selector, and WholeWhen or WholeCEL a condition on objects that keep all fields.
	// "" is unset.
	WholeLabels, WholeWhen, WholeCEL string
}

// Selectors are evaluated by the server. "" selects everything.
type Selectors struct{ Labels, Fields string }

// Pattern reports whether the match can select several resources.
func (m Match) Pattern() bool { return strings.Contains(m.Group+m.Resource, "*") }

// Matches reports whether the match selects a resource with this group, plural name and kind.
func (m Match) Matches(group, resource, kind string) bool {
	if m.Kind != "" {
		return naming.Match(m.Group, group) && m.Kind == kind
	}
	return naming.Match(m.Group, group) && naming.Match(m.Resource, resource)
}

// Namespaces limits a resource to some namespaces. The zero value means all of them.
type Namespaces struct {
	// Include and Exclude hold names and patterns; "*" matches any characters. An empty Include means all.
	Include, Exclude []string
}

// All reports whether all namespaces are selected.
func (n Namespaces) All() bool { return len(n.Include) == 0 && len(n.Exclude) == 0 }

// Matches reports whether a namespace is selected. Exclude takes precedence over Include.
func (n Namespaces) Matches(namespace string) bool {
	matches := func(pattern string) bool { return naming.Match(pattern, namespace) }
	return (len(n.Include) == 0 || slices.ContainsFunc(n.Include, matches)) &&
		!slices.ContainsFunc(n.Exclude, matches)
}

// MatchesVersion reports whether the match selects a resource of this kind in this version.
func (m Match) MatchesVersion(gvr schema.GroupVersionResource, kind string) bool {
	return m.Matches(gvr.Group, gvr.Resource, kind) && (m.Version == "" || m.Version == gvr.Version)
}

// IndexesOf returns the distinct indexes that all matching resources declare for a type. Different indexes of
// the same name get the name of their resource as a prefix: certs/issuer.
func (c *Config) IndexesOf(gvr schema.GroupVersionResource, kind string) []*Index {
	type declaration struct {
		owner string
		index *Index
	}
	var declared []declaration
	for _, resource := range c.Resources {
		if !resource.Match.MatchesVersion(gvr, kind) {
			continue
		}
		for _, index := range resource.Indexes {
			if !slices.ContainsFunc(declared, func(x declaration) bool { return x.index.Same(index) }) {
				declared = append(declared, declaration{resource.Name, index})
			}
		}
	}
	indexes := make([]*Index, len(declared))
	for i, x := range declared {
		indexes[i] = x.index
		if slices.ContainsFunc(declared, func(y declaration) bool {
			return y != x && y.index.Name == x.index.Name
		}) {
			indexes[i] = x.index.Renamed(x.owner + "/" + x.index.Name)
		}
	}
	return indexes
}

// ReferencesOf returns the references that all matching resources declare for a type.
func (c *Config) ReferencesOf(gvr schema.GroupVersionResource, kind string) []*Reference {
	var references []*Reference
	for _, resource := range c.Resources {
		if resource.Match.MatchesVersion(gvr, kind) {
			references = append(references, resource.References...)
		}
	}
	return references
}

// CheckMetricScope returns an error if a resource with metrics is limited to some namespaces or by selectors.
// Programs that cache all objects of a type use it: their metrics would count other objects, too.
func (c *Config) CheckMetricScope() error {
	var limited []Diagnostic
	for _, r := range c.Resources {
		if len(r.Metrics) > 0 && (!r.Namespaces.All() || r.Selectors != Selectors{}) {
			limited = append(limited, r.Finding(codeContradict,
				"the metrics of the resource are limited by namespaces or selectors, but all objects are cached here",
				"remove them, and use a label for the namespace, or when:"))
		}
	}
	if len(limited) == 0 {
		return nil
	}
	return &ConfigError{Diagnostics: limited}
}

// MetricsOf returns the metrics that all matching resources declare for a type. The name of their Index is
// the one that IndexesOf returns, or RESOURCE/metrics/METRIC for an index that IndexesOf does not return.
func (c *Config) MetricsOf(gvr schema.GroupVersionResource, kind string) []*Metric {
	var metrics []*Metric
	for _, resource := range c.Resources {
		if !resource.Match.MatchesVersion(gvr, kind) {
			continue
		}
		for _, m := range resource.Metrics {
			renamed := *m
			if m.ownsIndex {
				renamed.Index = m.Index.Renamed(resource.Name + "/" + m.Index.Name)
			}
			for _, index := range c.IndexesOf(gvr, kind) {
				if !m.ownsIndex && index.fingerprint() == m.Index.fingerprint() {
					renamed.Index = index
				}
			}
			metrics = append(metrics, &renamed)
		}
	}
	return metrics
}
