package discovery_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// ambiguousDefinitions are CRDs that share names with each other and with built-in types.
var ambiguousDefinitions = []crdSpec{
	{group: "cert-manager.io", plural: "certificates", kind: "Certificate", scope: "Namespaced",
		shortNames: []any{"cert", "certs"}, versions: []string{"v1", "v1alpha2", "!v1beta1"}},
	{group: "networking.internal.knative.dev", plural: "certificates", kind: "Certificate",
		scope: "Namespaced", shortNames: []any{"kcert"}, versions: []string{"v1alpha1"}},
	{group: "metallb.io", plural: "services", kind: "Service", scope: "Namespaced", shortNames: []any{"svc"},
		versions: []string{"v1"}},
	{group: "a.example.com", plural: "deployments", kind: "Deployment", scope: "Cluster",
		shortNames: []any{"deploy"}, versions: []string{"v2", "v1"}},
	{group: "example.com", plural: "sheep", kind: "Sheep", scope: "Namespaced", versions: []string{"v1"}},
}

func newClient(t *testing.T, config *rest.Config, options discovery.Options) *discovery.Client {
	t.Helper()
	c, err := discovery.NewClient(config, options)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestResolvesLikeKubectl compares the preferred resources with kubectl api-resources. It also compares the
// resolution of every name of every resource with client-go's mappers, which kubectl uses.
func TestResolvesLikeKubectl(t *testing.T) {
	var definitions []*unstructured.Unstructured
	for _, s := range ambiguousDefinitions {
		definitions = append(definitions, s.object())
	}
	harness.InstallCRDs(t, definitions...)
	config := harness.Config(t)
	counting, requests := harness.CountRequests(config)
	c := newClient(t, counting, discovery.Options{})
	catalog, err := c.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkRequestsSent(t, requests, "everything", "/api", "/apis")
	if unknown := catalog.FailedGroupVersions(); len(unknown) > 0 {
		t.Errorf("FailedGroupVersions() = %v, want none", unknown)
	}

	t.Run("api-resources", func(t *testing.T) { compareAPIResources(t, catalog) })
	t.Run("mappers", func(t *testing.T) { compareMappers(t, catalog, config) })
	t.Run("cold", func(t *testing.T) {
		requests.Reset()
		if _, err := newClient(t, counting, discovery.Options{}).Resolve(t.Context(),
			"certs.cert-manager.io"); err != nil {
			t.Fatal(err)
		}
		checkRequestsSent(t, requests, "a name with a group", "/apis")
	})
}

// checkRequestsSent expects one GET of each path since the last reset.
func checkRequestsSent(t *testing.T, requests *harness.Requests, name string, paths ...string) {
	t.Helper()
	want := map[harness.Request]int{}
	for _, p := range paths {
		want[harness.Request{Verb: "GET", Path: p}] = 1
	}
	if diff := cmp.Diff(want, requests.All()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// compareAPIResources compares name, short names, version, scope and kind of each type.
func compareAPIResources(t *testing.T, catalog *discovery.Catalog) {
	var want, got []string
	for line := range strings.Lines(harness.Kubectl(t, "api-resources", "--no-headers")) {
		want = append(want, strings.Join(strings.Fields(line), " "))
	}
	for _, r := range catalog.Resources() {
		if !r.Preferred {
			continue
		}
		fields := []string{r.GVR.Resource}
		if len(r.ShortNames) > 0 {
			fields = append(fields, strings.Join(r.ShortNames, ","))
		}
		namespaced := map[discovery.Scope]string{discovery.Namespaced: "true",
			discovery.Cluster: "false"}[r.Scope]
		got = append(got, strings.Join(append(fields, r.GVR.GroupVersion().String(), namespaced,
			r.GVK.Kind), " "))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-kubectl +catalog):\n%s", diff)
	}
	t.Logf("%d types", len(got))
}

// compareMappers resolves every name of every resource in both ways. The mappers use legacy discovery,
// because client-go reads short names from aggregated discovery in a random order.
func compareMappers(t *testing.T, catalog *discovery.Catalog, config *rest.Config) {
	aggregated, err := clientdiscovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	legacy := &firstResultCache{DiscoveryInterface: aggregated.WithLegacy()}
	groups, err := restmapper.GetAPIGroupResources(legacy)
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewShortcutExpander(restmapper.NewDiscoveryRESTMapper(groups), legacy, nil)
	categories := restmapper.NewDiscoveryCategoryExpander(legacy)

	names := map[string]bool{}
	for _, r := range catalog.Resources() {
		for _, n := range append([]string{r.GVR.Resource, r.Singular, r.GVK.Kind,
			strings.ToLower(r.GVK.Kind)}, r.ShortNames...) {
			names[n] = true
			if g := r.GVR.Group; g != "" {
				names[n+"."+g] = true
				names[n+"."+strings.TrimSuffix(g[:len(g)/2],
					".")] = true // a truncated group, which is often ambiguous
			}
		}
		// client-go drops the version for short names only.
		for _, n := range []string{r.GVR.Resource, r.Singular, r.GVK.Kind} {
			names[n+"."+r.GVR.Version+"."+r.GVR.Group] = true
		}
	}
	compared := 0
	for name := range names {
		if _, ok := categories.Expand(name); ok {
			continue
		}
		want, err := kubectlMapping(mapper, name)
		got, gotErr := catalog.Resolve(name)
		switch {
		case err != nil && gotErr != nil:
		case err != nil:
			t.Errorf("%s: got %s, want no match as in kubectl: %v", name, got.Resources[0], err)
		case gotErr != nil:
			t.Errorf("%s: %v, kubectl has %v", name, gotErr, want.Resource)
		case want.Resource != got.Resources[0].GVR || want.GroupVersionKind != got.Resources[0].GVK ||
			(want.Scope.Name() == meta.RESTScopeNameNamespace) !=
				(got.Resources[0].Scope == discovery.Namespaced):
			t.Errorf("%s: got %s, kubectl has %v", name, got.Resources[0], want.Resource)
		default:
			compared++
		}
	}
	t.Logf("%d names agree", compared)
	compareCategories(t, catalog, categories)
}

func compareCategories(t *testing.T, catalog *discovery.Catalog, categories restmapper.CategoryExpander) {
	for _, category := range []string{"all", "api-extensions"} {
		want, ok := categories.Expand(category)
		got, err := catalog.Resolve(category)
		if !ok || err != nil {
			t.Errorf("category %s: got %v, %v", category, ok, err)
			continue
		}
		members := map[schema.GroupResource]bool{}
		for _, gr := range want {
			members[gr] = true
		}
		for _, r := range got.Resources {
			if !members[r.GVR.GroupResource()] {
				t.Errorf("category %s contains %s, kubectl's does not", category, r)
			}
			delete(members, r.GVR.GroupResource())
		}
		for _, s := range got.Skipped {
			delete(members, s.GVR.GroupResource())
		}
		if len(members) > 0 {
			t.Errorf("category %s does not contain %v", category, members)
		}
	}
}

// kubectlMapping resolves a resource argument like kubectl.
func kubectlMapping(mapper meta.RESTMapper, name string) (*meta.RESTMapping, error) {
	full, short := schema.ParseResourceArg(name)
	gvk := schema.GroupVersionKind{}
	if full != nil {
		gvk, _ = mapper.KindFor(*full)
	}
	if gvk.Empty() {
		gvk, _ = mapper.KindFor(short.WithVersion(""))
	}
	if !gvk.Empty() {
		return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	fullKind, kind := schema.ParseKindArg(name)
	if fullKind == nil {
		withoutVersion := kind.WithVersion("")
		fullKind = &withoutVersion
	}
	if mapping, err := mapper.RESTMapping(fullKind.GroupKind(), fullKind.Version); err == nil {
		return mapping, nil
	}
	return mapper.RESTMapping(kind, "")
}

// firstResultCache answers with its first result. client-go's mappers repeat the requests for every name.
type firstResultCache struct {
	clientdiscovery.DiscoveryInterface
	once      sync.Once
	groups    []*metav1.APIGroup
	resources []*metav1.APIResourceList
	err       error
}

func (f *firstResultCache) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	f.once.Do(func() { f.groups, f.resources, f.err = f.DiscoveryInterface.ServerGroupsAndResources() })
	return f.groups, f.resources, f.err
}
