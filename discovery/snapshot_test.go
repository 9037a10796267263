package discovery

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/crdcache/crdcache/discovery/crd"
)

// TestSnapshotCatalog verifies that a snapshot and discovery give equal catalogs.
func TestSnapshotCatalog(t *testing.T) {
	groups := sampleGroups()
	groups[3].Versions[1].Failure, groups[3].Versions[1].Stale = "stale", true
	discovered := catalogAt(0, groups...)
	s := newTypeState(DefaultDiscoveryLag)
	s.setCRDsForbidden(startTime)
	s.applyCatalog(discovered)
	got := newSnapshot(&s).Catalog()
	byName := cmpopts.SortSlices(func(a, b Resource) bool { return a.String() < b.String() })
	if diff := cmp.Diff(discovered.Resources(), got.Resources(), byName); diff != "" {
		t.Errorf("resources (-discovery +snapshot):\n%s", diff)
	}
	if diff := cmp.Diff(groupNames(discovered), groupNames(got)); diff != "" {
		t.Errorf("groups (-discovery +snapshot):\n%s", diff)
	}
	if u := got.FailedGroupVersions(); len(u) != 1 || !errors.Is(u[0].Err, ErrStale) {
		t.Errorf("FailedGroupVersions() = %v, want one stale version", u)
	}
}

func TestSnapshotCatalogOfNewDefinitions(t *testing.T) {
	versions := func(names ...string) func(*crd.Definition) {
		return func(d *crd.Definition) {
			d.Versions = nil
			for _, name := range names {
				d.Versions = append(d.Versions, crd.Version{Name: name, Served: name != "v3"})
			}
		}
	}
	s := newTypeState(DefaultDiscoveryLag)
	if _, err := s.replaceCRDs([]*crd.Definition{
		definition("as", "a", versions("v1beta1")),
		definition("bs", "b", versions("v1beta1", "v1", "v3")),
		definition("cs", "c", func(d *crd.Definition) { d.Established = false }),
	}, nil, startTime); err != nil {
		t.Fatal(err)
	}
	s.applyCatalog(catalogAt(0, oneGroup("", "pods"), oneGroup("zz.io", "zs")))
	c := newSnapshot(&s).Catalog()
	if diff := cmp.Diff([]string{"", "zz.io", "example.com"}, groupNames(c)); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{"as": "as.v1beta1.example.com", "bs": "bs.v1.example.com",
		"cs": "", "bs.v3": ""} {
		res, err := c.Resolve(name)
		var got string
		if err == nil {
			got = res.Resources[0].String()
		}
		if got != want {
			t.Errorf("Resolve(%q) = %q, %v, want %q", name, got, err, want)
		}
	}
	if r, _ := c.Resolve("bs"); r.Resources[0].CRDUID != "b" {
		t.Errorf("CRDUID = %q, want b", r.Resources[0].CRDUID)
	}
}

func groupNames(c *Catalog) []string {
	var names []string
	for _, g := range c.groupOrder {
		names = append(names, g.Name)
	}
	return names
}
