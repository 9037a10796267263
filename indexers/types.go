package indexers

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MatchesVersion reports whether the match selects a resource of this kind in this version.
func (m Match) MatchesVersion(gvr schema.GroupVersionResource, kind string) bool {
	return m.Matches(gvr.Group, gvr.Resource, kind) && (m.Version == "" || m.Version == gvr.Version)
}

// IndexesOf returns the distinct indexes that all matching resources declare for a type. Different indexes of
// the same name get the name of their resource as a prefix: certs/issuer.
func (c *Config) IndexesOf(gvr schema.GroupVersionResource, kind string) []*Index {
	type owned struct {
		owner string
		index *Index
	}
	var declared []owned
	for _, resource := range c.Resources {
		if !resource.Match.MatchesVersion(gvr, kind) {
			continue
		}
		for _, index := range resource.Indexes {
			if !slices.ContainsFunc(declared, func(x owned) bool { return x.index.Same(index) }) {
				declared = append(declared, owned{resource.Name, index})
			}
		}
	}
	indexes := make([]*Index, len(declared))
	for i, x := range declared {
		indexes[i] = x.index
		if slices.ContainsFunc(declared, func(y owned) bool {
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
