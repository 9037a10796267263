package discovery

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Catalog is the set of resources that an API server serves at one moment. It is immutable.
//
// Resources are in the server's order of preference: the core group first, then the groups in the order the
// server lists them, and in each group the preferred version first. The first of several matches is therefore
// the one that kubectl would choose.
type Catalog struct {
	*catalogContent
	fetchedAt  time.Time
	refreshErr error
}

// catalogContent follows from the discovery documents. The catalogs of equal clusters share it.
type catalogContent struct {
	resources           []Resource
	groupOrder          []group // groups and versions in the server's order, without resources
	failedGroupVersions []GroupFailure
	// types returns the resources by type. The caller must not change the map.
	types func() map[schema.GroupResource]Type

	// The indexes hold positions in resources, ascending.
	byGVR       map[schema.GroupVersionResource]int
	byName      map[string][]int // plural and singular
	byShortName map[string][]int
	byKind      map[string][]int // lower case
	byCategory  map[string][]int // preferred versions only
}

// Resources returns every version of every type, the most preferred first. Subresources are listed in
// Resource.Subresources instead. The caller owns the slice; the elements share memory.
func (c *Catalog) Resources() []Resource { return slices.Clone(c.resources) }

// Lookup returns the resource that serves exactly gvr.
func (c *Catalog) Lookup(gvr schema.GroupVersionResource) (Resource, bool) {
	i, ok := c.byGVR[gvr]
	if !ok {
		return Resource{}, false
	}
	return c.resources[i], true
}

// FailedGroupVersions returns the group versions with failed or stale discovery. Their earlier types are part
// of Resources, marked Stale.
func (c *Catalog) FailedGroupVersions() []GroupFailure { return slices.Clone(c.failedGroupVersions) }

// RefreshErr returns an error if the catalog has exceeded its TTL and could not be refreshed.
func (c *Catalog) RefreshErr() error { return c.refreshErr }

// newCatalog indexes the groups of documents, which come in order of preference.
func newCatalog(documents ...[]group) *Catalog {
	c := &Catalog{catalogContent: &catalogContent{
		byGVR:       map[schema.GroupVersionResource]int{},
		byName:      map[string][]int{},
		byShortName: map[string][]int{},
		byKind:      map[string][]int{},
		byCategory:  map[string][]int{},
	}}
	content := c.catalogContent
	c.types = sync.OnceValue(func() map[schema.GroupResource]Type { return typesOf(content.resources) })
	for _, groups := range documents {
		for _, g := range groups {
			c.addGroup(g)
		}
	}
	for i := range c.resources {
		c.index(i)
	}
	return c
}

func (c *Catalog) addGroup(g group) {
	i := slices.IndexFunc(c.groupOrder, func(other group) bool { return other.Name == g.Name })
	if i < 0 {
		i = len(c.groupOrder)
		c.groupOrder = append(c.groupOrder, group{Name: g.Name})
	}
	served := map[string][]string{}
	for _, v := range g.Versions {
		c.groupOrder[i].ensureVersion(v.Name)
		for _, r := range v.Resources {
			served[r.Name] = append(served[r.Name], v.Name)
		}
	}
	for _, v := range g.Versions {
		gv := schema.GroupVersion{Group: g.Name, Version: v.Name}
		if v.Failure != "" {
			failure := GroupFailure{GroupVersion: gv, Err: ErrStale}
			if !v.Stale {
				failure.Err = errors.New(v.Failure)
			}
			c.failedGroupVersions = append(c.failedGroupVersions, failure)
		}
		for _, r := range v.Resources {
			c.addResource(gv, r, served[r.Name], v.Failure != "")
		}
	}
}

func (c *Catalog) addResource(gv schema.GroupVersion, r documentResource, served []string, stale bool) {
	gvr := gv.WithResource(r.Name)
	if _, duplicate := c.byGVR[gvr]; duplicate {
		return
	}
	resource := Resource{
		GVR: gvr, GVK: gv.WithKind(r.Kind), Scope: Cluster, Singular: r.Singular,
		Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories, Subresources: r.Subresources,
		Preferred: served[0] == gv.Version, ServedVersions: served, Stale: stale,
	}
	if r.Namespaced {
		resource.Scope = Namespaced
	}
	resource.Singular = cmp.Or(resource.Singular, strings.ToLower(r.Kind))
	// Some types answer with a kind of another group version, as a scale subresource does.
	if r.KindVersion != "" {
		resource.GVK.Group, resource.GVK.Version = r.KindGroup, r.KindVersion
	}
	c.byGVR[gvr] = len(c.resources)
	c.resources = append(c.resources, resource)
}

func (c *Catalog) index(i int) {
	r := c.resources[i]
	c.byName[r.GVR.Resource] = append(c.byName[r.GVR.Resource], i)
	if r.Singular != r.GVR.Resource {
		c.byName[r.Singular] = append(c.byName[r.Singular], i)
	}
	for _, s := range r.ShortNames {
		c.byShortName[s] = append(c.byShortName[s], i)
	}
	kind := strings.ToLower(r.GVK.Kind)
	c.byKind[kind] = append(c.byKind[kind], i)
	if r.Preferred {
		for _, category := range r.Categories {
			c.byCategory[category] = append(c.byCategory[category], i)
		}
	}
}
