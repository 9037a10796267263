package apitest

import (
	"cmp"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/serving/readapi"
	"github.com/crdcache/crdcache/test/testcluster"
)

// Server is a running API server. It is safe for concurrent use.
type Server struct {
	*httptest.Server
	types []Type
	// A restore of Backup replaces current.
	current atomic.Pointer[testcluster.Cluster]
	// http is the client of a server in memory; otherwise nil.
	http *http.Client

	mu struct {
		sync.Mutex
		requests []string
		repairs  map[string][]func() // by path of the fault
	}
}

// New returns a server of some types. The test's cleanup stops it.
func New(t testing.TB, types ...Type) *Server {
	t.Helper()
	s := newServer(t, types)
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.end)
	return s
}

// newServer returns a server that keeps its history until Compact, and sends bookmarks only at the end of a
// watch-list or watch, so that tests control all events.
func newServer(t testing.TB, types []Type) *Server {
	t.Helper()
	s := &Server{types: types}
	s.current.Store(newCluster(t, types))
	s.mu.repairs = map[string][]func(){}
	return s
}

func newCluster(t testing.TB, types []Type) *testcluster.Cluster {
	t.Helper()
	cluster, err := testcluster.New(t.Context(), testcluster.Options{
		WithoutBuiltIns: true, Types: definitions(types), History: math.MaxInt,
		BookmarkInterval: math.MaxInt64,
	})
	must(t, err)
	return cluster
}

func (s *Server) cluster() *testcluster.Cluster { return s.current.Load() }

// Backup copies all objects. restore makes the server continue from them, as after a restore of etcd: with
// their resource versions, and without faults. Requests in progress continue with the old state; see
// CloseClientConnections.
func (s *Server) Backup(t testing.TB) (restore func()) {
	t.Helper()
	var objects []unstructured.Unstructured
	client := s.cluster().Client()
	for _, typ := range s.types {
		list, err := client.Resource(typ.GVR).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		objects = append(objects, list.Items...)
	}
	slices.SortFunc(objects, func(a, b unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(len(a.GetResourceVersion()), len(b.GetResourceVersion())),
			cmp.Compare(a.GetResourceVersion(), b.GetResourceVersion()))
	})
	return func() {
		t.Helper()
		restored := newCluster(t, s.types)
		for _, o := range objects {
			must(t, restored.Restore(&o))
		}
		s.current.Store(restored)
	}
}

func (s *Server) end() {
	s.CloseClientConnections() // watches end only with their clients
	s.Close()
}

// Config returns the config of a client without a rate limit.
func (s *Server) Config() *rest.Config { return &rest.Config{Host: s.URL, QPS: -1} }

func (s *Server) Client(t testing.TB) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfigAndClient(s.Config(), s.HTTPClient(t))
	must(t, err)
	return client
}

// HTTPClient returns an HTTP client that reaches the server.
func (s *Server) HTTPClient(t testing.TB) *http.Client {
	t.Helper()
	if s.http != nil {
		return s.http
	}
	client, err := rest.HTTPClientFor(s.Config())
	must(t, err)
	return client
}

// Create stores objects unchanged, including their status.
func (s *Server) Create(t testing.TB, _ schema.GroupVersionResource, objects ...*unstructured.Unstructured) {
	t.Helper()
	for _, obj := range objects {
		must(t, s.cluster().Load(t.Context(), obj))
	}
}

// Update replaces objects by name, whatever their resource version.
func (s *Server) Update(t testing.TB, gvr schema.GroupVersionResource,
	objects ...*unstructured.Unstructured) {
	t.Helper()
	for _, obj := range objects {
		client := s.resource(t, gvr, obj.GetNamespace())
		stored, err := client.Get(t.Context(), obj.GetName(), metav1.GetOptions{})
		must(t, err)
		next := obj.DeepCopy()
		next.SetResourceVersion(stored.GetResourceVersion())
		if _, err := client.Update(t.Context(), next, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// Delete deletes an object.
func (s *Server) Delete(t testing.TB, gvr schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	must(t, s.resource(t, gvr, namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
}

func (s *Server) resource(t testing.TB, gvr schema.GroupVersionResource,
	namespace string) dynamic.ResourceInterface {
	t.Helper()
	client := s.Client(t).Resource(gvr)
	if namespace == "" {
		return client
	}
	return client.Namespace(namespace)
}

// Compact removes the history of the objects: a watch of an earlier version gets 410.
func (s *Server) Compact() { s.cluster().Compact() }

// Requests returns the requests so far, each as "verb path?query".
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mu.requests)
}

// AwaitRequest waits for a request of this path with any of the verbs, or without verbs for any request.
func (s *Server) AwaitRequest(t testing.TB, path string, verbs ...string) {
	t.Helper()
	match := testcluster.Match{Path: path, Verbs: verbs}
	if err := s.cluster().Faults().Await(t.Context(), match, 1); err != nil {
		t.Fatalf("no request for %s came: %v", path, err)
	}
}

// serve records a request before it wakes waiters.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	verb := strings.ToLower(r.Method)
	if request, ok := readapi.ParseRequest(r); ok {
		verb = request.Verb
	}
	s.mu.Lock()
	s.mu.requests = append(s.mu.requests, verb+" "+r.URL.RequestURI())
	s.mu.Unlock()
	s.cluster().ServeHTTP(w, r)
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
