package config

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

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

// Resource is a resource of a config as it is declared, with the places of what is said about it. The fields mean what
// those of indexers.Resource do.
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
		return matchPattern(m.Group, group) && m.Kind == kind
	}
	return matchPattern(m.Group, group) && matchPattern(m.Resource, resource)
}

// Matches reports whether a namespace is among those that are meant. What is excluded is so however it is included.
func (n Namespaces) Matches(namespace string) bool {
	included := len(n.Include) == 0
	for _, p := range n.Include {
		included = included || matchPattern(p, namespace)
	}
	for _, p := range n.Exclude {
		included = included && !matchPattern(p, namespace)
	}
	return included
}

// matchPattern reports whether s fits a pattern in which "*" stands for any run of characters.
func matchPattern(pattern, s string) bool {
	first, rest, ok := strings.Cut(pattern, "*")
	if !ok {
		return pattern == s
	}
	if !strings.HasPrefix(s, first) {
		return false
	}
	s = s[len(first):]
	for {
		part, after, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(s, part)
		}
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s, rest = s[i+len(part):], after
	}
}
