package discovery

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// apiServer serves discovery the way a kube-apiserver does, in either form, and counts requests.
type apiServer struct {
	*httptest.Server
	mu struct {
		sync.Mutex
		groups   []group // the core group first
		legacy   bool
		failWith map[string]int // status by path
		requests []string
		unblock  chan struct{} // if not nil, requests wait until it is closed
	}
}

func newAPIServer(t testing.TB, groups ...group) *apiServer {
	t.Helper()
	s := &apiServer{}
	s.mu.groups = groups
	s.mu.failWith = map[string]int{}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// client returns a client that limits the rate of request rounds only if the options do.
func (s *apiServer) client(t testing.TB, options Options) *Client {
	t.Helper()
	if options.interval == 0 {
		options.interval = time.Nanosecond
	}
	c, err := NewClient(&rest.Config{Host: s.URL}, options)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *apiServer) changeGroups(change func(groups *[]group, fail map[string]int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.mu.groups, s.mu.failWith)
}

// takeRequests returns the requests since the last call, sorted, as "path status".
func (s *apiServer) takeRequests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.mu.requests
	s.mu.requests = nil
	slices.Sort(out)
	return out
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	status, groups := s.mu.failWith[r.URL.Path], slices.Clone(s.mu.groups)
	legacy, unblock := s.mu.legacy, s.mu.unblock
	s.mu.Unlock()
	if unblock != nil {
		<-unblock
	}
	recorder := httptest.NewRecorder()
	switch aggregated := strings.Contains(r.Header.Get("Accept"), "apidiscovery"); {
	case status != 0:
		http.Error(recorder, "injected failure", status)
	case aggregated && !legacy:
		serveAggregated(recorder, r, groups)
	default:
		serveLegacy(recorder, r, groups)
	}
	s.mu.Lock()
	s.mu.requests = append(s.mu.requests, fmt.Sprintf("%s %d", r.URL.Path, recorder.Code))
	s.mu.Unlock()
	for k, v := range recorder.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(recorder.Code)
	_, _ = w.Write(recorder.Body.Bytes())
}

func serveAggregated(w http.ResponseWriter, r *http.Request, groups []group) {
	list := apidiscovery.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList",
		APIVersion: "apidiscovery.k8s.io/v2"}}
	for _, g := range groups {
		if (g.Name == "") == (r.URL.Path == "/api") {
			list.Items = append(list.Items, toAggregated(g))
		}
	}
	body, _ := json.Marshal(list)
	etag := fmt.Sprintf("%q", fmt.Sprintf("%X", sha256.Sum256(body)))
	w.Header().Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	_, _ = w.Write(body)
}

func toAggregated(g group) apidiscovery.APIGroupDiscovery {
	out := apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.Name}}
	for _, v := range g.Versions {
		av := apidiscovery.APIVersionDiscovery{Version: v.Name,
			Freshness: apidiscovery.DiscoveryFreshnessCurrent}
		if v.Stale {
			av.Freshness = apidiscovery.DiscoveryFreshnessStale
		}
		for _, r := range v.Resources {
			ar := apidiscovery.APIResourceDiscovery{
				Resource: r.Name, SingularResource: r.Singular, Scope: apidiscovery.ScopeCluster,
				ResponseKind: &metav1.GroupVersionKind{Group: g.Name, Version: v.Name, Kind: r.Kind},
				Verbs:        r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
			}
			if r.Namespaced {
				ar.Scope = apidiscovery.ScopeNamespace
			}
			for _, sub := range r.Subresources {
				ar.Subresources = append(ar.Subresources,
					apidiscovery.APISubresourceDiscovery{Subresource: sub})
			}
			av.Resources = append(av.Resources, ar)
		}
		out.Versions = append(out.Versions, av)
	}
	return out
}

func serveLegacy(w http.ResponseWriter, r *http.Request, groups []group) {
	w.Header().Set("Content-Type", "application/json")
	path := strings.Trim(r.URL.Path, "/")
	for _, g := range groups {
		for _, v := range g.Versions {
			if path == strings.Trim("apis/"+g.Name+"/"+v.Name, "/") || g.Name == "" && path == "api/"+v.Name {
				_ = json.NewEncoder(w).Encode(legacyResources(v))
				return
			}
		}
	}
	switch path {
	case "api":
		list := metav1.APIVersions{}
		for _, v := range groups[0].Versions {
			list.Versions = append(list.Versions, v.Name)
		}
		_ = json.NewEncoder(w).Encode(list)
	case "apis":
		_ = json.NewEncoder(w).Encode(legacyGroups(groups))
	default:
		http.NotFound(w, r)
	}
}

func legacyGroups(groups []group) metav1.APIGroupList {
	list := metav1.APIGroupList{}
	for _, g := range groups {
		if g.Name == "" {
			continue
		}
		ag := metav1.APIGroup{Name: g.Name}
		for _, v := range g.Versions {
			gv := metav1.GroupVersionForDiscovery{GroupVersion: g.Name + "/" + v.Name, Version: v.Name}
			// In legacy discovery, the preferred version is not always the first.
			ag.Versions = append([]metav1.GroupVersionForDiscovery{gv}, ag.Versions...)
		}
		ag.PreferredVersion = ag.Versions[len(ag.Versions)-1]
		list.Groups = append(list.Groups, ag)
	}
	return list
}

func legacyResources(v groupVersion) metav1.APIResourceList {
	list := metav1.APIResourceList{}
	for _, r := range v.Resources {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: r.Name, SingularName: r.Singular, Kind: r.Kind, Namespaced: r.Namespaced,
			Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
		})
		for _, sub := range r.Subresources {
			list.APIResources = append(list.APIResources,
				metav1.APIResource{Name: r.Name + "/" + sub, Kind: r.Kind})
		}
	}
	return list
}

var readWrite = []string{"create", "delete", "get", "list", "patch", "update", "watch"}

// sampleGroups is a small cluster with realistic ambiguities.
func sampleGroups() []group {
	return []group{
		{Versions: []groupVersion{{Name: "v1", Resources: []documentResource{
			{Name: "pods", Singular: "pod", Kind: "Pod", Namespaced: true, Verbs: readWrite,
				ShortNames: []string{"po"}, Categories: []string{"all"}, Subresources: []string{"log",
					"status"}},
			{Name: "services", Singular: "service", Kind: "Service", Namespaced: true, Verbs: readWrite,
				ShortNames: []string{"svc"}, Categories: []string{"all"}},
			{Name: "events", Singular: "event", Kind: "Event", Namespaced: true, Verbs: readWrite,
				ShortNames: []string{"ev"}},
			{Name: "bindings", Singular: "binding", Kind: "Binding", Namespaced: true,
				Verbs: []string{"create"}, Categories: []string{"all"}},
			{Name: "nodes", Singular: "node", Kind: "Node", Verbs: readWrite, ShortNames: []string{"no"}},
		}}}},
		{Name: "apps", Versions: []groupVersion{{Name: "v1", Resources: []documentResource{
			{Name: "deployments", Singular: "deployment", Kind: "Deployment", Namespaced: true,
				Verbs: readWrite, ShortNames: []string{"deploy"}, Categories: []string{"all"}},
		}}}},
		{Name: "events.k8s.io", Versions: []groupVersion{{Name: "v1", Resources: []documentResource{
			{Name: "events", Singular: "event", Kind: "Event", Namespaced: true, Verbs: readWrite,
				ShortNames: []string{"ev"}},
		}}}},
		{Name: "storage.k8s.io", Versions: []groupVersion{
			{Name: "v1", Resources: []documentResource{
				{Name: "storageclasses", Singular: "storageclass", Kind: "StorageClass", Verbs: readWrite,
					ShortNames: []string{"sc"}},
			}},
			{Name: "v1beta1", Resources: []documentResource{
				{Name: "storageclasses", Singular: "storageclass", Kind: "StorageClass", Verbs: readWrite,
					ShortNames: []string{"sc"}},
				{Name: "csistoragecapacities", Singular: "csistoragecapacity", Kind: "CSIStorageCapacity",
					Namespaced: true, Verbs: readWrite},
			}},
		}},
		{Name: "cert-manager.io", Versions: []groupVersion{
			{Name: "v1", Resources: []documentResource{
				{Name: "certificates", Singular: "certificate", Kind: "Certificate", Namespaced: true,
					Verbs: readWrite, ShortNames: []string{"cert",
						"certs"}, Categories: []string{"cert-manager"}, Subresources: []string{"status"}},
				{Name: "clusterissuers", Singular: "clusterissuer", Kind: "ClusterIssuer", Verbs: readWrite,
					Categories: []string{"cert-manager"}},
				{Name: "reports", Kind: "Report", Verbs: []string{"list"},
					Categories: []string{"cert-manager"}},
			}},
			{Name: "v1alpha2", Resources: []documentResource{
				{Name: "certificates", Singular: "certificate", Kind: "Certificate", Namespaced: true,
					Verbs: readWrite, ShortNames: []string{"cert",
						"certs"}, Categories: []string{"cert-manager"}},
			}},
		}},
		{Name: "networking.internal.knative.dev",
			Versions: []groupVersion{{Name: "v1alpha1", Resources: []documentResource{
				{Name: "certificates", Singular: "certificate", Kind: "Certificate", Namespaced: true,
					Verbs: readWrite, ShortNames: []string{"kcert"}},
				{Name: "servers", Singular: "server", Kind: "Server", Namespaced: true, Verbs: readWrite,
					ShortNames: []string{"svc"}},
			}}}},
	}
}
