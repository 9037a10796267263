package discovery

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kubeversion "k8s.io/apimachinery/pkg/version"

	"github.com/crdcache/crdcache/internal/naming"
)

// Snapshot is the state of a Tracker at one moment. It is immutable and safe for concurrent use.
type Snapshot struct {
	types               map[schema.GroupResource]Type
	groupOrder          []group // groups and their versions in the server's order, without resources
	failedGroupVersions []GroupFailure

	catalog func() *Catalog
}

func newSnapshot(s *typeState) *Snapshot {
	out := &Snapshot{types: maps.Clone(s.types), groupOrder: s.groupOrder,
		failedGroupVersions: s.failedGroupVersions}
	out.catalog = sync.OnceValue(func() *Catalog { return catalogOf(out) })
	return out
}

// Lookup returns a type.
func (s *Snapshot) Lookup(gr schema.GroupResource) (Type, bool) {
	t, ok := s.types[gr]
	return t, ok
}

// Len returns the number of types.
func (s *Snapshot) Len() int { return len(s.types) }

// Types returns all types, sorted by group and resource.
func (s *Snapshot) Types() []Type {
	return naming.Map(slices.SortedFunc(maps.Keys(s.types), compareGroupResource),
		func(gr schema.GroupResource) Type { return s.types[gr] })
}

// Catalog returns the types in a Catalog to resolve names, with Resource.CRDUID set. Types that are not
// established and versions that are not served are not included. The catalog is built once per snapshot.
func (s *Snapshot) Catalog() *Catalog { return s.catalog() }

// catalogOf converts the types of a snapshot to discovery documents and indexes them.
func catalogOf(s *Snapshot) *Catalog {
	groups := map[string]*group{}
	groupNamed := func(name string) *group {
		if groups[name] == nil {
			groups[name] = &group{Name: name}
		}
		return groups[name]
	}
	established := map[schema.GroupResource]Type{}
	for _, t := range s.Types() {
		if t.Established {
			established[t.GroupResource] = t
			groupNamed(t.GroupResource.Group).addType(t)
		}
	}
	for _, f := range s.failedGroupVersions {
		v := groupNamed(f.GroupVersion.Group).ensureVersion(f.GroupVersion.Version)
		v.Failure, v.Stale = f.Err.Error(), errors.Is(f.Err, ErrStale)
	}
	c := newCatalog(sortGroups(groups, s.groupOrder))
	for i := range c.resources {
		t := established[c.resources[i].GVR.GroupResource()]
		c.resources[i].CRDUID, c.resources[i].CRDGeneration = t.UID, t.Generation
	}
	return c
}

func (g *group) addType(t Type) {
	for _, v := range t.Versions {
		if !v.Served {
			continue
		}
		existing := g.ensureVersion(v.Name)
		existing.Resources = append(existing.Resources, documentResource{
			Name: t.GroupResource.Resource, Singular: t.Singular,
			Kind: v.Kind.Kind, KindGroup: v.Kind.Group, KindVersion: v.Kind.Version,
			Namespaced: t.Scope == Namespaced, Verbs: v.Verbs, ShortNames: t.ShortNames,
			Categories: t.Categories, Subresources: v.Subresources,
		})
	}
}

// ensureVersion returns the group's version with that name, and adds it if necessary.
func (g *group) ensureVersion(name string) *groupVersion {
	i := slices.IndexFunc(g.Versions, func(v groupVersion) bool { return v.Name == name })
	if i < 0 {
		i = len(g.Versions)
		g.Versions = append(g.Versions, groupVersion{Name: name})
	}
	return &g.Versions[i]
}

// sortGroups sorts groups and versions in the server's order. Groups that are newer than the last discovery
// round come last, by name.
func sortGroups(groups map[string]*group, groupOrder []group) []group {
	position := map[string]int{"": -1}
	for i, orderedGroup := range groupOrder {
		if orderedGroup.Name != "" {
			position[orderedGroup.Name] = i
		}
		if g := groups[orderedGroup.Name]; g != nil {
			g.sortVersions(orderedGroup)
		}
	}
	out := make([]group, 0, len(groups))
	for name, g := range groups {
		if _, exists := position[name]; !exists {
			position[name] = len(groupOrder)
			g.sortVersions(group{})
		}
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b group) int {
		return cmp.Or(cmp.Compare(position[a.Name], position[b.Name]), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// sortVersions sorts the versions as in ordered. If ordered lacks a version that a CRD has just added, it
// uses the order of CRD versions.
func (g *group) sortVersions(ordered group) {
	position := map[string]int{}
	for i, v := range ordered.Versions {
		position[v.Name] = i
	}
	complete := !slices.ContainsFunc(g.Versions,
		func(v groupVersion) bool { _, ok := position[v.Name]; return !ok })
	slices.SortStableFunc(g.Versions, func(a, b groupVersion) int {
		if complete {
			return position[a.Name] - position[b.Name]
		}
		return kubeversion.CompareKubeAwareVersionStrings(b.Name, a.Name)
	})
}
