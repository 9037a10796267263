package live

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/serving/readapi"
	"github.com/crdcache/crdcache/test/testcluster"
)

const demoGroup = "demo.crdcache.dev"

var (
	workloads    = schema.GroupVersionResource{Group: demoGroup, Version: "v1", Resource: "workloads"}
	environments = schema.GroupVersionResource{Group: demoGroup, Version: "v1", Resource: "environments"}
	namespaces   = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// fixture is a cluster with the project's manifests, and a Server with a factory that caches some of its
// types.
type fixture struct {
	*testing.T
	cluster *testcluster.Cluster
	factory *dynamicinformer.Factory
	server  *Server
}

// newFixture serves workloads with indexes, environments, and the built-in type namespaces. prepare can
// inject faults before the server starts.
func newFixture(t *testing.T, options Options, prepare ...func(*testcluster.Cluster)) *fixture {
	t.Helper()
	cluster, err := testcluster.New(t.Context(),
		testcluster.Options{Paths: []string{"../../../testdata/crds", "../../../testdata/objects"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range prepare {
		change(cluster)
	}
	return newFixtureOf(t, cluster, options)
}

// newFixtureOf is newFixture for an existing cluster.
func newFixtureOf(t *testing.T, cluster *testcluster.Cluster, options Options) *fixture {
	t.Helper()
	s := &fixture{T: t, cluster: cluster}
	ctx, cancel := context.WithCancel(context.Background())
	tracker, err := discovery.NewTracker(cluster.Config(), discovery.TrackerOptions{})
	s.must(err)
	tracked := make(chan struct{})
	go func() { defer close(tracked); _ = tracker.Run(ctx) }() // ended by cancel
	s.factory, err = dynamicinformer.New(dynamicinformer.Options{Config: cluster.Config(),
		Types: tracker.Types()})
	s.must(err)
	options.Factory, options.Types, options.Config = s.factory, tracker.Types(), cluster.Config()
	s.server, err = New(options)
	s.must(err)
	t.Cleanup(func() {
		s.server.Close()
		s.must(s.factory.Shutdown(context.Background()))
		cancel()
		<-tracked
	})
	config, err := indexers.Load("../../../testdata/indexes/platform.yaml")
	s.must(err)
	for _, gvr := range []schema.GroupVersionResource{workloads, environments, namespaces} {
		informer, err := s.factory.ForResource(gvr)
		s.must(err)
		var indexes []*indexers.Index
		if gvr == workloads {
			resource, _ := config.Resource("workloads")
			indexes = resource.Indexes
			s.must(informer.AddIndexes(indexers.CompileIndexes(indexes...)))
		}
		s.must(s.server.AddType(informer, indexes...))
	}
	s.must(s.factory.Start(ctx))
	if err := s.factory.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, gvr := range []schema.GroupVersionResource{workloads, environments, namespaces} {
		s.must(s.server.WaitForSync(t.Context(), gvr.GroupResource()))
	}
	return s
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// get sends a GET to a handler; headers alternates names and values.
func get(t testing.TB, h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// decodeJSON returns the JSON of a response without the parts that depend on the server's progress.
func decodeJSON(t testing.TB, text string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return text
	}
	if object, ok := value.(map[string]any); ok && (object["items"] != nil || object["rows"] != nil) {
		metadata := object["metadata"].(map[string]any)
		metadata["resourceVersion"] = "N"
		if metadata["continue"] != nil && metadata["continue"] != "" {
			metadata["continue"] = "TOKEN"
		}
		items, _ := object["items"].([]any)
		for _, item := range items {
			if object["kind"] == "NamespaceList" { // both a kube-apiserver and the server omit these fields
				delete(item.(map[string]any), "kind")
				delete(item.(map[string]any), "apiVersion")
			}
		}
	}
	return value
}

func (f *fixture) client(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	f.Helper()
	client, err := dynamic.NewForConfig(readapi.Config(f.server))
	f.must(err)
	return client.Resource(gvr)
}

// writeEnvironment writes an environment to the cluster.
func (f *fixture) writeEnvironment(name, stage string) *unstructured.Unstructured {
	f.Helper()
	f.must(f.cluster.Load(f.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": demoGroup + "/v1", "kind": "Environment", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"stage": stage, "region": "moon"},
	}}))
	o, err := f.cluster.Client().Resource(environments).Get(f.Context(), name, metav1.GetOptions{})
	f.must(err)
	return o
}

// deleteEnvironment deletes an environment.
func (f *fixture) deleteEnvironment(name string) {
	f.Helper()
	f.must(f.cluster.Client().Resource(environments).Delete(f.Context(), name, metav1.DeleteOptions{}))
}

// stream reads the lines of a watch.
type stream struct {
	t     *testing.T
	body  io.ReadCloser
	lines *bufio.Scanner
}

// watch starts a watch of a path of the server.
func (f *fixture) watch(path string) *stream {
	f.Helper()
	return watchOf(f.T, f.server, path)
}

func watchOf(t *testing.T, h http.Handler, path string) *stream {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := readapi.NewTransport(h).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		t.Fatalf("%s: %s", answer.Status, text)
	}
	t.Cleanup(func() { answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	return &stream{t, answer.Body, lines}
}

type event struct {
	Type   string
	Object struct {
		Code     int
		Metadata struct{ Name, ResourceVersion string }
	}
}

// next reads an event. It returns false at the end of the watch.
func (s *stream) next() (e event, more bool) {
	s.t.Helper()
	late := time.AfterFunc(time.Minute/2, func() { s.body.Close() })
	defer late.Stop()
	if !s.lines.Scan() {
		return e, false
	}
	if err := json.Unmarshal(s.lines.Bytes(), &e); err != nil {
		s.t.Fatal(err)
	}
	return e, true
}
