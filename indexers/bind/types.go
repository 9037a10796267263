package bind

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
)

// resourceType is a resource type, as discovery reports it.
type resourceType struct {
	schema.GroupResource
	kind       string
	namespaced bool
	// versions are those of listable, the most preferred first.
	versions []string
}

func resourceTypesOf(catalog *discovery.Catalog) (types []resourceType) {
	for _, r := range catalog.Resources() {
		if !r.Preferred {
			continue // one of the versions is enough
		}
		typ := resourceType{GroupResource: r.GVR.GroupResource(), kind: r.GVK.Kind,
			namespaced: r.Scope == discovery.Namespaced}
		typ.versions = listable(r.ServedVersions, func(version string) []string {
			served, _ := catalog.Lookup(typ.WithVersion(version))
			return served.Verbs
		})
		types = append(types, typ)
	}
	return types
}

// resourceTypeOf converts a type that a discovery.Tracker reports.
func resourceTypeOf(t discovery.Type) resourceType {
	typ := resourceType{
		GroupResource: t.GroupResource, kind: t.Kind, namespaced: t.Scope == discovery.Namespaced,
	}
	verbs := map[string][]string{}
	var served []string
	for _, v := range t.Versions {
		if v.Served {
			served, verbs[v.Name] = append(served, v.Name), v.Verbs
		}
	}
	typ.versions = listable(served, func(version string) []string { return verbs[version] })
	return typ
}

// listable returns the versions that can be listed. Those that can be watched too are first, because
// informers poll the others.
func listable(versions []string, verbsOf func(version string) []string) []string {
	var watched, polled []string
	for _, version := range versions {
		switch verbs := verbsOf(version); {
		case !slices.Contains(verbs, "list"):
		case slices.Contains(verbs, "watch"):
			watched = append(watched, version)
		default:
			polled = append(polled, version)
		}
	}
	return append(watched, polled...)
}

// gvr returns the version that a match selects; false if the type does not serve it.
func (s resourceType) gvr(m indexers.Match) (schema.GroupVersionResource, bool) {
	if m.Version != "" {
		return s.WithVersion(m.Version), slices.Contains(s.versions, m.Version)
	}
	if len(s.versions) == 0 {
		return schema.GroupVersionResource{}, false
	}
	return s.WithVersion(s.versions[0]), true
}

// pageSize is the page size of lists; one definition can have a megabyte.
const pageSize = 50

// Definitions reads the CustomResourceDefinitions of a cluster, for Config.Check.
func Definitions(ctx context.Context, client dynamic.Interface) ([]*crd.Definition, error) {
	var definitions []*crd.Definition
	lists := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.Resource(crd.GVR).List(ctx, options)
	})
	lists.PageSize = pageSize
	err := lists.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		object := item.(*unstructured.Unstructured)
		d, err := crd.FromUnstructured(object.Object)
		if err != nil {
			return fmt.Errorf("%s: %w", object.GetName(), err)
		}
		definitions = append(definitions, d)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("bind: listing CustomResourceDefinitions: %w", err)
	}
	return definitions, nil
}
