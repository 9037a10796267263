package indexers

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
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
	return naming.Find(c.Resources, func(r *Resource) bool { return r.Name == name })
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
	// wholeCondition is Keep.WholeWhen as the condition of an index without values; nil if it is unset.
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
	ofReferences := naming.Map(r.References, func(reference *Reference) *Index { return reference.Index })
	return append(r.CacheIndexes(), ofReferences...)
}

// Index returns the index with a name.
func (r *Resource) Index(name string) (*Index, bool) {
	return naming.Find(r.Indexes, func(index *Index) bool { return index.Name == name })
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

// Prune lists the fields that are removed before objects are stored, but after their indexes are computed.
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
	// WholeLabels, a label selector, and WholeWhen, a condition, select objects that keep all fields.
	WholeLabels, WholeWhen string
}

// Selectors are evaluated by the server. "" selects everything.
type Selectors struct{ Labels, Fields string }

// Pattern reports whether the match can select several resources.
func (m Match) Pattern() bool { return strings.Contains(m.Group+m.Resource, "*") }

// TypeName returns the name of the type for package discovery, as in widgets.v1.example.com.
func (m Match) TypeName() string {
	name := m.Resource + m.Kind
	if m.Version != "" && m.Group != "" {
		name += "." + m.Version
	}
	if m.Group != "" {
		name += "." + m.Group
	}
	return name
}

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

// ResourceOf returns one resource for a type, for programs with one cache for each type. It has the indexes,
// references and metrics of all resources that match the type: different indexes of the same name get the
// name of their resource as a prefix, as in certs/issuer, and the indexes of metrics have the name
// RESOURCE/metrics/METRIC. It returns an error together with the resource if the resources have different
// settings, because a cache has only one: they must be equal, except for a storage mode that is not set.
// Names restrict the resources. If none matches, the resource is empty.
func (c *Config) ResourceOf(gvr schema.GroupVersionResource, kind string,
	names ...string) (*Resource, error) {
	var matching []*Resource
	for _, r := range c.Resources {
		if r.Match.MatchesVersion(gvr, kind) && (len(names) == 0 || slices.Contains(names, r.Name)) {
			matching = append(matching, r)
		}
	}
	if len(matching) == 0 {
		return &Resource{}, nil
	}
	var errs []error
	merged := *matching[0]
	merged.Indexes, merged.References, merged.Metrics = indexesOf(matching), nil, nil
	for _, r := range matching {
		merged.Storage.Mode = cmp.Or(merged.Storage.Mode, r.Storage.Mode)
		merged.References = append(merged.References, r.References...)
		for _, m := range r.Metrics {
			merged.Metrics = append(merged.Metrics, m.mergedFrom(r, merged.Indexes))
		}
		for _, setting := range []struct {
			name  string
			equal bool
		}{
			{"storage", r.Storage.Mode == "" || r.Storage == merged.Storage},
			{"prune", reflect.DeepEqual(r.Prune, merged.Prune)},
			{"keep", reflect.DeepEqual(r.Keep, merged.Keep)},
			{"namespaces", reflect.DeepEqual(r.Namespaces, merged.Namespaces)},
			{"selectors", r.Selectors == merged.Selectors},
		} {
			if !setting.equal {
				errs = append(errs, fmt.Errorf("the resources %q and %q of the config select the type with different %s: write the same in both",
					merged.Name, r.Name, setting.name))
			}
		}
	}
	return &merged, errors.Join(errs...)
}

func (m *Metric) mergedFrom(r *Resource, indexes []*Index) *Metric {
	merged := *m
	if m.ownsIndex {
		merged.Index = m.Index.Renamed(r.Name + "/" + m.Index.Name)
	}
	for _, index := range indexes {
		if !m.ownsIndex && index.fingerprint() == m.Index.fingerprint() {
			merged.Index = index
		}
	}
	return &merged
}

// indexesOf returns the distinct indexes of resources. Different indexes of the same name get the name of
// their resource as a prefix: certs/issuer.
func indexesOf(resources []*Resource) []*Index {
	type declaration struct {
		owner string
		index *Index
	}
	var declared []declaration
	for _, resource := range resources {
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
