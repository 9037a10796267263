package discovery

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
)

// catalogWith returns a catalog of types in the given versions and order. If failure is not empty, it is the
// discovery error of each version.
func catalogWith(failure string, gvrs ...schema.GroupVersionResource) *Catalog {
	var groups []group
	for _, gvr := range gvrs {
		i := slices.IndexFunc(groups, func(g group) bool { return g.Name == gvr.Group })
		if i < 0 {
			i = len(groups)
			groups = append(groups, group{Name: gvr.Group})
		}
		v := groups[i].ensureVersion(gvr.Version)
		v.Failure = failure
		v.Resources = append(v.Resources, documentResource{Name: gvr.Resource, Kind: gvr.Resource,
			Verbs: []string{"list", "watch"}})
	}
	return newCatalog(groups)
}

// TestSelection verifies that a pattern can match other types later. The name of a single type matches only
// the first type that it resolved to. The first name that matches a type selects its version.
func TestSelection(t *testing.T) {
	named, err := NewSelection("*.z.io", "widgets")
	if err != nil {
		t.Fatal(err)
	}
	one := schema.GroupVersionResource{Group: "z.io", Version: "v1", Resource: "widgets"}
	if types, absent := named.Types(catalogWith("", one)); len(types) != 1 || types[0].Name != "widgets" ||
		types[0].FromPattern || len(absent) > 0 {
		t.Errorf("a type that matches a pattern and a name = %+v, absent %v, want one type with the name",
			types, absent)
	}
	gvr := func(group, version, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	}
	s, err := NewSelection("widgets", "boxes.v1.demo.io", "*.demo.io", "none")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		reason, failure string
		served          []schema.GroupVersionResource
		want, absent    []string
	}{
		{"no types", "", nil, nil, []string{"*.demo.io", "boxes.v1.demo.io", "none", "widgets"}},
		{"first types", "", []schema.GroupVersionResource{gvr("z.io", "v1", "widgets"),
			gvr("demo.io", "v2", "boxes"), gvr("demo.io", "v1", "boxes")},
			[]string{"widgets.v1.z.io", "boxes.v1.demo.io"}, []string{"none"}},
		{"another group has widgets, another type matches the pattern", "",
			[]schema.GroupVersionResource{gvr("a.io", "v1", "widgets"), gvr("z.io", "v2", "widgets"),
				gvr("demo.io", "v1", "boxes"), gvr("demo.io", "v1", "lids")},
			[]string{"widgets.v2.z.io", "boxes.v1.demo.io", "lids.v1.demo.io"}, []string{"none"}},
		{"widgets of z.io and a version of boxes are removed", "",
			[]schema.GroupVersionResource{gvr("a.io", "v1", "widgets"), gvr("demo.io", "v2", "boxes")},
			[]string{"boxes.v2.demo.io"}, []string{"boxes.v1.demo.io", "none", "widgets"}},
		{"discovery fails", "no answer", []schema.GroupVersionResource{gvr("z.io", "v1", "widgets"),
			gvr("demo.io", "v1", "lids")},
			[]string{"widgets.v1.z.io", "lids.v1.demo.io"}, []string{"boxes.v1.demo.io", "none"}},
	} {
		types, absent := s.Types(catalogWith(step.failure, step.served...))
		var got []string
		for _, typ := range types {
			got = append(got, typ.String())
			if typ.Stale != (step.failure != "") || typ.FromPattern != (typ.Name == "*.demo.io") {
				t.Errorf("%s: wrong Stale or FromPattern in %+v", step.reason, typ)
			}
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s: types (-want +got):\n%s", step.reason, diff)
		}
		if diff := cmp.Diff(step.absent, slices.Sorted(maps.Keys(absent))); diff != "" {
			t.Errorf("%s: absent (-want +got):\n%s", step.reason, diff)
		}
		for name, err := range absent {
			var none *NoMatchError
			if !errors.As(err, &none) || none.Name != name {
				t.Errorf("%s: Err of %s = %v, want NoMatch", step.reason, name, err)
			}
		}
	}
	if _, err := NewSelection("a b"); err == nil {
		t.Error("NewSelection() with an invalid name succeeded, want an error")
	}
}

// TestResolvedTypeOf verifies that a resolved type has a version only if its name contains it. The first
// label of a group, as in widgets.v1.x.com, is not a version.
func TestResolvedTypeOf(t *testing.T) {
	widgetsV1 := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	for name, tt := range map[string]struct {
		gvr  schema.GroupVersionResource
		want string
	}{
		"widgets":                {widgetsV1, ""},
		"widgets.example.com":    {widgetsV1, ""},
		"widgets.v1":             {widgetsV1, "v1"},
		"widgets.v1.example.com": {widgetsV1, "v1"},
		"*.v1.example.com":       {widgetsV1, "v1"},
		"*":                      {widgetsV1, ""},
		"widgets.v1.x.com": {schema.GroupVersionResource{Group: "v1.x.com", Version: "v1",
			Resource: "widgets"}, ""},
		"widgets.v2.x.com": {schema.GroupVersionResource{Group: "v2.x.com", Version: "v1",
			Resource: "widgets"}, ""},
		"pods.v1.": {schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "v1"},
	} {
		n, err := ParseName(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := resolvedTypeOf(n, tt.gvr); got != (ResolvedType{tt.gvr.GroupResource(), tt.want}) {
			t.Errorf("%s resolves to %v, want version %q", name, got, tt.want)
		}
	}
}

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
