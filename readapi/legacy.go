package readapi

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	all := groupVersions(types)
	i := slices.IndexFunc(all, func(gv groupVersion) bool {
		return gv.Group == group &&
			gv.Version == version
	})
	if i < 0 {
		return nil
	}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: all[i].String()}
	for _, t := range all[i].types {
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
