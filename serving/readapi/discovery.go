package readapi

import (
	"cmp"
	"slices"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/crdcache/crdcache/internal/naming"
)

func (t Type) verbs() []string {
	if t.writable {
		return []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	}
	return []string{"get", "list", "watch"}
}

func (t Type) subresourceVerbs() []string {
	if t.writable {
		return []string{"get", "patch", "update"}
	}
	return []string{"get"}
}

// groupOrder is the order of built-in groups in a kube-apiserver's discovery. Other groups follow by name.
// The order decides which type an ambiguous name such as "events" resolves to.
var groupOrder = []string{
	"", "apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io",
	"autoscaling", "batch", "certificates.k8s.io", "networking.k8s.io", "policy", "rbac.authorization.k8s.io",
	"storage.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io",
	"coordination.k8s.io", "node.k8s.io", "discovery.k8s.io", "resource.k8s.io",
	"flowcontrol.apiserver.k8s.io",
}

type groupVersion struct {
	schema.GroupVersion
	types []Type
}

// groupVersions returns the group versions in order of preference.
func groupVersions(types []Type) []groupVersion {
	positions := map[schema.GroupVersion]int{}
	var versions []groupVersion
	for _, t := range types {
		for _, v := range t.Versions {
			gv := schema.GroupVersion{Group: t.Group, Version: v.Name}
			i, ok := positions[gv]
			if !ok {
				i = len(versions)
				positions[gv] = i
				versions = append(versions, groupVersion{GroupVersion: gv})
			}
			versions[i].types = append(versions[i].types, t)
		}
	}
	rank := func(group string) int {
		if i := slices.Index(groupOrder, group); i >= 0 {
			return i
		}
		return len(groupOrder)
	}
	slices.SortStableFunc(versions, func(a, b groupVersion) int {
		return cmp.Or(cmp.Compare(rank(a.Group), rank(b.Group)), cmp.Compare(a.Group, b.Group),
			version.CompareKubeAwareVersionStrings(b.Version, a.Version))
	})
	return versions
}

// aggregatedDiscovery returns the document of aggregated discovery for the core group or for all other
// groups.
func aggregatedDiscovery(types []Type, core bool) any {
	list := apidiscovery.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"},
		Items:    []apidiscovery.APIGroupDiscovery{},
	}
	for _, gv := range groupVersions(types) {
		if (gv.Group == "") != core {
			continue
		}
		if n := len(list.Items); n == 0 || list.Items[n-1].Name != gv.Group {
			list.Items = append(list.Items,
				apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: gv.Group}})
		}
		group := &list.Items[len(list.Items)-1]
		resources := naming.Map(gv.types,
			func(t Type) apidiscovery.APIResourceDiscovery { return t.discovery(gv.Version) })
		group.Versions = append(group.Versions, apidiscovery.APIVersionDiscovery{Version: gv.Version,
			Freshness: apidiscovery.DiscoveryFreshnessCurrent, Resources: resources})
	}
	return list
}

func (t Type) discovery(version string) apidiscovery.APIResourceDiscovery {
	kind := &metav1.GroupVersionKind{Group: t.Group, Version: version, Kind: t.Names.Kind}
	d := apidiscovery.APIResourceDiscovery{
		Resource: t.Names.Plural, ResponseKind: kind, Scope: apidiscovery.ScopeCluster,
		SingularResource: t.Names.Singular, Verbs: t.verbs(),
		ShortNames: t.Names.ShortNames, Categories: t.Names.Categories,
	}
	if t.Namespaced {
		d.Scope = apidiscovery.ScopeNamespace
	}
	for _, sub := range t.Version(version).Subresources {
		d.Subresources = append(d.Subresources, apidiscovery.APISubresourceDiscovery{
			Subresource: sub, ResponseKind: kind, Verbs: t.subresourceVerbs(),
		})
	}
	return d
}

// legacyRoot returns the document /api or /apis of unaggregated discovery.
func legacyRoot(types []Type, core bool, host string) any {
	if core {
		roots := metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0",
				ServerAddress: host}},
		}
		for _, gv := range groupVersions(types) {
			if gv.Group == "" {
				roots.Versions = append(roots.Versions, gv.Version)
			}
		}
		return roots
	}
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
		Groups: []metav1.APIGroup{}}
	for _, gv := range groupVersions(types) {
		if gv.Group == "" {
			continue
		}
		served := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
		if n := len(list.Groups); n == 0 || list.Groups[n-1].Name != gv.Group {
			list.Groups = append(list.Groups, metav1.APIGroup{Name: gv.Group, PreferredVersion: served})
		}
		group := &list.Groups[len(list.Groups)-1]
		group.Versions = append(group.Versions, served)
	}
	return list
}

// legacyGroup returns the document /apis/GROUP, or nil.
func legacyGroup(types []Type, name string) any {
	groups := legacyRoot(types, false, "").(metav1.APIGroupList).Groups
	i := slices.IndexFunc(groups, func(g metav1.APIGroup) bool { return g.Name == name })
	if i < 0 {
		return nil
	}
	group := groups[i]
	group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
	return group
}

// legacyResources returns the document /api/VERSION or /apis/GROUP/VERSION, or nil.
func legacyResources(types []Type, group, version string) any {
	versions := groupVersions(types)
	i := slices.IndexFunc(versions, func(gv groupVersion) bool {
		return gv.Group == group && gv.Version == version
	})
	if i < 0 {
		return nil
	}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: versions[i].String()}
	for _, t := range versions[i].types {
		r := metav1.APIResource{
			Name: t.Names.Plural, SingularName: t.Names.Singular, Namespaced: t.Namespaced,
			Kind:  t.Names.Kind,
			Verbs: t.verbs(), ShortNames: t.Names.ShortNames, Categories: t.Names.Categories,
		}
		list.APIResources = append(list.APIResources, r)
		for _, sub := range t.Version(version).Subresources {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: t.Names.Plural + "/" +
					sub, Namespaced: t.Namespaced, Kind: t.Names.Kind, Verbs: t.subresourceVerbs(),
			})
		}
	}
	return list
}
