package config

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/naming"
)

// The apiVersion and kind of a config.
const (
	APIVersion = "crdcache.dev/v1beta1"
	Kind       = "IndexConfig"
)

// deprecatedVersions are older versions that can be read; see upgrade.
var deprecatedVersions = []string{"crdcache.dev/v1alpha1"}

// IsDeprecated reports whether a version is deprecated.
func IsDeprecated(apiVersion string) bool { return slices.Contains(deprecatedVersions, apiVersion) }

// Default limits of an index.
const (
	DefaultMaxValues     = 64
	DefaultMaxValueBytes = 1024
)

// Resource is a declared resource with positions for findings. See indexers.Resource for the fields.
type Resource struct {
	Config, Name string
	Match        Match
	Optional     bool
	Storage      Storage
	Prune        Prune
	Keep         Keep
	Namespaces   Namespaces
	Selectors    Selectors
	// LabelSelector and FieldSelector are the parsed Selectors; nil selects everything.
	LabelSelector labels.Selector
	FieldSelector fields.Selector
	Indexes       []*Index
	References    []*Reference

	File *File
	// MatchPositions are the positions of the match.
	MatchPositions MatchPositions
}

// AllIndexes returns the indexes, including the indexes of references, which are all that is read from an
// object.
func (r *Resource) AllIndexes() []*Index {
	indexes := slices.Clone(r.Indexes)
	for _, reference := range r.References {
		indexes = append(indexes, reference.Index)
	}
	return indexes
}

// Match is indexers.Match.
type Match struct{ Group, Version, Resource, Kind string }

// MatchPositions are the positions of the fields of a match.
type MatchPositions struct {
	Group, Version, Name Position
	// Fields is the position of the field selector.
	Fields Position
}

// Storage is indexers.Storage.
type Storage struct{ Mode string }

// Prune is indexers.Prune.
type Prune struct {
	Presets []string
	Remove  []*jsonpath.Path
}

// Keep is indexers.Keep.
type Keep struct{ Paths []*jsonpath.Path }

// Namespaces is indexers.Namespaces.
type Namespaces struct{ Include, Exclude []string }

// Selectors is indexers.Selectors.
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

// Matches reports whether a namespace is selected. Exclude takes precedence over Include.
func (n Namespaces) Matches(namespace string) bool {
	included := len(n.Include) == 0
	for _, p := range n.Include {
		included = included || naming.Match(p, namespace)
	}
	for _, p := range n.Exclude {
		included = included && !naming.Match(p, namespace)
	}
	return included
}
