package bind

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
)

// serverType is a type of the server.
type serverType struct {
	schema.GroupResource
	kind       string
	namespaced bool
	// versions can be listed and watched, the most preferred first.
	versions []string
}

func kindsOf(catalog *discovery.Catalog) []serverType {
	var kinds []serverType
	at := map[schema.GroupResource]int{}
	for _, r := range catalog.Resources() {
		gr := r.GVR.GroupResource()
		i, ok := at[gr]
		if !ok {
			i = len(kinds)
			at[gr] = i
			kinds = append(kinds, serverType{GroupResource: gr, kind: r.GVK.Kind,
				namespaced: r.Scope == discovery.Namespaced})
		}
		if r.Watchable() {
			kinds[i].versions = append(kinds[i].versions, r.GVR.Version)
		}
		kinds[i].sortVersions(r.ServedVersions)
	}
	return kinds
}

func (k *serverType) sortVersions(preference []string) {
	slices.SortStableFunc(k.versions, func(a, b string) int {
		return slices.Index(preference, a) - slices.Index(preference, b)
	})
}

// kindOf converts a type of a tracker.
func kindOf(t discovery.Type) serverType {
	k := serverType{GroupResource: t.GroupResource, kind: t.Kind, namespaced: t.Scope == discovery.Namespaced}
	for _, v := range t.Versions {
		if v.Served && slices.Contains(v.Verbs, "list") && slices.Contains(v.Verbs, "watch") {
			k.versions = append(k.versions, v.Name)
		}
	}
	return k
}

// gvr returns the version that a match selects; false if the type does not serve it.
func (k serverType) gvr(m indexers.Match) (schema.GroupVersionResource, bool) {
	if m.Version != "" {
		return k.WithVersion(m.Version), slices.Contains(k.versions, m.Version)
	}
	if len(k.versions) == 0 {
		return schema.GroupVersionResource{}, false
	}
	return k.WithVersion(k.versions[0]), true
}

// pageSize is the page size of lists; one definition can have a megabyte.
const pageSize = 50

// Definitions reads the CustomResourceDefinitions of a cluster, for Config.Check.
func Definitions(ctx context.Context, client dynamic.Interface) ([]*crd.Definition, error) {
	var definitions []*crd.Definition
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := client.Resource(crd.GVR).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("bind: listing CustomResourceDefinitions: %w", err)
		}
		for i := range page.Items {
			d, err := crd.FromUnstructured(page.Items[i].Object)
			if err != nil {
				return nil, fmt.Errorf("bind: %s: %w", page.Items[i].GetName(), err)
			}
			definitions = append(definitions, d)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return definitions, nil
		}
	}
}
