package config

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/indexers/jsonpath"
	"github.com/crdcache/crdcache/internal/pattern"
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

// Resource is a resource of a config as it is declared, with the places of what is said about it. The fields
// mean what those of indexers.Resource do.
type Resource struct {
	Config, Name string
	Match        Match
	Optional     bool
	Storage      Storage
	Prune        Prune
	Namespaces   Namespaces
	Selectors    Selectors
	// LabelSelector and FieldSelector are what Selectors mean; nil for everything.
	LabelSelector labels.Selector
	FieldSelector fields.Selector
	Indexes       []*Index
	References    []*Reference

	File *File
	// At is where the match is written.
	At MatchPlaces
}

// AllIndexes are the indexes and those of the references: all that is read of an object.
func (r *Resource) AllIndexes() []*Index {
	all := slices.Clone(r.Indexes)
	for _, reference := range r.References {
		all = append(all, reference.Index)
	}
	return all
}

// Match is indexers.Match.
type Match struct{ Group, Version, Versions, Resource, Kind string }

// MatchPlaces is where the parts of a match are written.
type MatchPlaces struct {
	Group, Version, Name Place
	// Fields is where the field selector is written.
	Fields Place
}

// Storage is indexers.Storage.
type Storage struct{ Mode string }

// Prune is indexers.Prune.
type Prune struct {
	Presets           []string
	Remove            []*jsonpath.Path
	RemoveAnnotations []string
}

// Namespaces is indexers.Namespaces.
type Namespaces struct{ Include, Exclude []string }

// Selectors is indexers.Selectors.
type Selectors struct{ Labels, Fields string }

// Pattern reports whether the match can mean several resources.
func (m Match) Pattern() bool { return strings.Contains(m.Group+m.Resource, "*") }

// Matches reports whether the match means a resource with this group, plural name and kind.
func (m Match) Matches(group, resource, kind string) bool {
	if m.Kind != "" {
		return pattern.Match(m.Group, group) && m.Kind == kind
	}
	return pattern.Match(m.Group, group) && pattern.Match(m.Resource, resource)
}

// Matches reports whether a namespace is among those that are meant. What is excluded is so however it is
// included.
func (n Namespaces) Matches(namespace string) bool {
	included := len(n.Include) == 0
	for _, p := range n.Include {
		included = included || pattern.Match(p, namespace)
	}
	for _, p := range n.Exclude {
		included = included && !pattern.Match(p, namespace)
	}
	return included
}
