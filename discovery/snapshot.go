package discovery

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Snapshot is what a Tracker knew at one moment. It is immutable and safe for concurrent use.
type Snapshot struct {
	types   map[schema.GroupResource]Type
	order   []string // groups, in the server's order
	unknown []GroupFailure

	catalog func() *Catalog
}

func newSnapshot(s *state) *Snapshot {
	out := &Snapshot{types: maps.Clone(s.types), order: s.groups, unknown: s.unknown}
	out.catalog = sync.OnceValue(out.buildCatalog)
	return out
}

// Lookup returns what is known about a type.
func (s *Snapshot) Lookup(gr schema.GroupResource) (Type, bool) {
	t, ok := s.types[gr]
	return t, ok
}

// Len returns the number of types.
func (s *Snapshot) Len() int { return len(s.types) }

// Types returns all types, sorted by group and resource.
func (s *Snapshot) Types() []Type {
	out := make([]Type, 0, len(s.types))
	for _, gr := range slices.SortedFunc(maps.Keys(s.types), compareGroupResource) {
		out = append(out, s.types[gr])
	}
	return out
}

// Catalog returns the same knowledge in the form that resolves names, with Resource.CRDUID set. Types
// that are not established and versions that are not served are not part of it. Building it takes a
// moment, once per snapshot.
func (s *Snapshot) Catalog() *Catalog { return s.catalog() }

func (s *Snapshot) buildCatalog() *Catalog {
	groups := map[string]*group{}
	var names []string
	uids := map[schema.GroupResource]types.UID{}
	for _, t := range s.Types() {
		if !t.Established {
			continue
		}
		g := groups[t.GroupResource.Group]
		if g == nil {
			g = &group{Name: t.GroupResource.Group}
			groups[g.Name] = g
			names = append(names, g.Name)
		}
		uids[t.GroupResource] = t.UID
		s.addType(g, t)
	}
	s.sortGroups(names)
	document := make([]group, 0, len(names))
	for _, name := range names {
		document = append(document, *groups[name])
	}
	s.markUnknown(document)
	c := newCatalog(document)
	for i := range c.resources {
		c.resources[i].CRDUID = uids[c.resources[i].GVR.GroupResource()]
	}
	return c
}

func (s *Snapshot) addType(g *group, t Type) {
	for _, v := range t.Versions {
		if !v.Served {
			continue
		}
		i := slices.IndexFunc(g.Versions, func(have version) bool { return have.Name == v.Name })
		if i < 0 {
			i = len(g.Versions)
			g.Versions = append(g.Versions, version{Name: v.Name})
		}
		g.Versions[i].Resources = append(g.Versions[i].Resources, resource{
			Name: t.GroupResource.Resource, Singular: t.Singular,
			Kind: v.Kind.Kind, KindGroup: v.Kind.Group, KindVersion: v.Kind.Version,
			Namespaced: t.Scope == Namespaced, Verbs: v.Verbs, ShortNames: t.ShortNames,
			Categories: t.Categories, Subresources: v.Subresources,
		})
	}
}

// sortGroups puts the core group first, then the groups as the server orders them, then groups that are
// newer than the last discovery round.
func (s *Snapshot) sortGroups(names []string) {
	position := map[string]int{}
	for i, name := range s.order {
		position[name] = i - len(s.order)
	}
	position[""] = -len(s.order) - 1
	slices.SortStableFunc(names, func(a, b string) int { return position[a] - position[b] })
}

func (s *Snapshot) markUnknown(document []group) {
	for _, f := range s.unknown {
		for gi := range document {
			if document[gi].Name != f.GroupVersion.Group {
				continue
			}
			for vi := range document[gi].Versions {
				if v := &document[gi].Versions[vi]; v.Name == f.GroupVersion.Version {
					v.Failure, v.Stale = f.Err.Error(), f.Err == ErrStale
				}
			}
		}
	}
}
