package discovery

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// group is one API group of a discovery document, converted from the aggregated or the legacy form.
type group struct {
	Name string
	// Versions are in order of preference.
	Versions []groupVersion
}

type groupVersion struct {
	Name      string
	Resources []documentResource
	// Failure is the reason why Resources are not confirmed; empty if they are.
	Failure string
	// Stale states that the server reported the version as stale, rather than that a request failed.
	Stale bool
}

type documentResource struct {
	Name         string
	Singular     string
	Kind         string
	KindGroup    string
	KindVersion  string
	Namespaced   bool
	Verbs        []string
	ShortNames   []string
	Categories   []string
	Subresources []string
}

func decodeAggregated(body []byte) ([]group, error) {
	var list apidiscovery.APIGroupDiscoveryList
	if err := decodeDocument(body, &list, &list.TypeMeta, &list.Items, "APIGroupDiscoveryList"); err != nil {
		return nil, err
	}
	groups := make([]group, 0, len(list.Items))
	for _, g := range list.Items {
		out := group{Name: g.Name, Versions: make([]groupVersion, 0, len(g.Versions))}
		for _, v := range g.Versions {
			if v.Version != "" {
				out.Versions = append(out.Versions, fromAggregated(v))
			}
		}
		groups = append(groups, out)
	}
	return groups, nil
}

// decodeDocument decodes a discovery document into list. It rejects null and documents of another kind, which
// are not empty documents: their types would be lost. Like client-go, it accepts a list without a kind.
func decodeDocument[T any](body []byte, document any, read *metav1.TypeMeta, list *[]T, kind string) error {
	if err := json.Unmarshal(body, document); err != nil {
		return fmt.Errorf("decode %s: %w", kind, err)
	}
	if read.Kind != kind && (read.Kind != "" || *list == nil) {
		return fmt.Errorf("decode discovery: the document is of kind %q, not %s", read.Kind, kind)
	}
	return nil
}

func fromAggregated(v apidiscovery.APIVersionDiscovery) groupVersion {
	out := groupVersion{Name: v.Version, Resources: make([]documentResource, 0, len(v.Resources))}
	if v.Freshness == apidiscovery.DiscoveryFreshnessStale {
		out.Stale, out.Failure = true, ErrStale.Error()
	}
	for _, r := range v.Resources {
		// A parent without a kind only contains subresources and cannot be listed.
		if r.Resource == "" || r.ResponseKind == nil || r.ResponseKind.Kind == "" {
			continue
		}
		res := documentResource{
			Name: r.Resource, Singular: r.SingularResource,
			Kind: r.ResponseKind.Kind, KindGroup: r.ResponseKind.Group, KindVersion: r.ResponseKind.Version,
			Namespaced: r.Scope == apidiscovery.ScopeNamespace,
			Verbs:      r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
		}
		for _, s := range r.Subresources {
			res.Subresources = append(res.Subresources, s.Subresource)
		}
		out.Resources = append(out.Resources, res)
	}
	return out
}

func decodeLegacyResources(body []byte) ([]documentResource, error) {
	var list metav1.APIResourceList
	if err := decodeDocument(body, &list, &list.TypeMeta, &list.APIResources, "APIResourceList"); err != nil {
		return nil, err
	}
	out := make([]documentResource, 0, len(list.APIResources))
	subresources := map[string][]string{}
	for _, r := range list.APIResources {
		if parent, sub, ok := strings.Cut(r.Name, "/"); ok {
			subresources[parent] = append(subresources[parent], sub)
			continue
		}
		if r.Name == "" || r.Kind == "" {
			continue
		}
		out = append(out, documentResource{
			Name: r.Name, Singular: r.SingularName, Kind: r.Kind, KindGroup: r.Group, KindVersion: r.Version,
			Namespaced: r.Namespaced, Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
		})
	}
	for i := range out {
		out[i].Subresources = subresources[out[i].Name]
	}
	return out, nil
}

// decodeLegacyGroups reads the APIGroupList of /apis, the preferred version first in each group.
func decodeLegacyGroups(body []byte) ([]group, error) {
	var list metav1.APIGroupList
	if err := decodeDocument(body, &list, &list.TypeMeta, &list.Groups, "APIGroupList"); err != nil {
		return nil, err
	}
	groups := make([]group, 0, len(list.Groups))
	for _, g := range list.Groups {
		out := group{Name: g.Name}
		preferred := g.PreferredVersion.Version
		for _, v := range g.Versions {
			switch {
			case v.Version == "":
			case v.Version == preferred:
				out.Versions = append([]groupVersion{{Name: v.Version}}, out.Versions...)
			default:
				out.Versions = append(out.Versions, groupVersion{Name: v.Version})
			}
		}
		groups = append(groups, out)
	}
	return groups, nil
}

// decodeLegacyVersions reads the APIVersions of /api into the core group.
func decodeLegacyVersions(body []byte) ([]group, error) {
	var list metav1.APIVersions
	if err := decodeDocument(body, &list, &list.TypeMeta, &list.Versions, "APIVersions"); err != nil {
		return nil, err
	}
	core := group{}
	for _, v := range list.Versions {
		if v != "" {
			core.Versions = append(core.Versions, groupVersion{Name: v})
		}
	}
	return []group{core}, nil
}

// fillUnconfirmed fills versions that could not be confirmed with the resources of an earlier document, so
// that an outage of one API server does not remove its types. Resources of the new document take precedence.
func fillUnconfirmed(groups, earlier []group) {
	earlierResources := map[schema.GroupVersion][]documentResource{}
	for _, g := range earlier {
		for _, v := range g.Versions {
			earlierResources[schema.GroupVersion{Group: g.Name, Version: v.Name}] = v.Resources
		}
	}
	for gi := range groups {
		for vi := range groups[gi].Versions {
			v := &groups[gi].Versions[vi]
			if v.Failure != "" {
				v.addMissing(earlierResources[schema.GroupVersion{Group: groups[gi].Name, Version: v.Name}])
			}
		}
	}
}

// addMissing adds the resources with other names.
func (v *groupVersion) addMissing(resources []documentResource) {
	v.Resources = slices.Clip(v.Resources)
	for _, r := range resources {
		isSame := func(have documentResource) bool { return have.Name == r.Name }
		if !slices.ContainsFunc(v.Resources, isSame) {
			v.Resources = append(v.Resources, r)
		}
	}
}
