package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/test/testcluster"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// testTimeout is the timeout of waits.
const testTimeout = 5 * time.Minute

var (
	workloads = schema.GroupVersionResource{Group: "demo.crdcache.dev", Version: "v1", Resource: "workloads"}
	secrets   = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// password must not be in any response. encodedPassword is its base64 form in the Secret.
const (
	password        = "correct-horse-battery"
	encodedPassword = "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5"
)

// secretConfig declares indexes and references that would reveal Secrets.
const secretConfig = `apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: secrets}
spec:
  resources:
  - name: secrets
    match: {group: "", version: v1, resource: secrets}
    indexes: [{name: password, path: .data.password, order: Sorted}]
    references: [{name: leak, to: {group: demo.crdcache.dev, kind: Environment, namePath: .data.password}}]
`

// fixture is a page of an in-memory cluster with the objects of testdata and a Secret.
type fixture struct {
	t       *testing.T
	cluster *testcluster.Cluster
	factory *dynamicinformer.Factory
	handler *Handler
	server  *httptest.Server
	client  *http.Client
}

func newFixture(t *testing.T, options Options) *fixture {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	cluster, err := testcluster.New(ctx,
		testcluster.Options{Paths: []string{"../../testdata/crds", "../../testdata/objects"}})
	must(t, err)
	s := &fixture{t: t, cluster: cluster}
	s.load(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata": map[string]any{"name": "vault", "namespace": "default", "annotations": map[string]any{
			"kubectl.kubernetes.io/last-applied-configuration": `{"data":{"password":"` + encodedPassword + `"}}`,
		}},
		"data": map[string]any{"password": encodedPassword},
	})
	s.startFactory(ctx, options)
	s.client = s.browser()
	return s
}

// startFactory starts a factory for the types of testdata and Secrets with their indexes, and serves its
// page.
func (f *fixture) startFactory(ctx context.Context, options Options) {
	t := f.t
	config, err := indexers.Parse(append(indexers.ReadSources("../../testdata/indexes/platform.yaml"),
		indexers.Source{Name: "secrets.yaml", Data: []byte(secretConfig)})...)
	must(t, err)
	client, err := discovery.NewClient(f.cluster.Config(), discovery.Options{})
	must(t, err)
	catalog, err := client.Catalog(ctx)
	must(t, err)
	f.factory, err = dynamicinformer.New(dynamicinformer.Options{Config: f.cluster.Config()})
	must(t, err)
	t.Cleanup(func() { _ = f.factory.Shutdown(context.Background()) })
	binding, err := bind.New(f.factory, config, bind.Options{})
	must(t, err)
	t.Cleanup(binding.Close)
	must(t, binding.Resolve(catalog))
	if _, err := f.factory.ForResource(schema.GroupVersionResource{Version: "v1",
		Resource: "namespaces"}); err != nil {
		t.Fatal(err)
	}
	must(t, f.factory.Start(ctx))
	waiting, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	must(t, f.factory.WaitForSync(waiting))
	definitions := definitionsOf(t)
	f.serve(Source{Title: "memory", Factory: f.factory, Binding: binding,
		Definition: func(gvr schema.GroupVersionResource) *crd.Definition {
			return definitions[gvr.GroupResource()]
		}}, options)
}

func definitionsOf(t *testing.T) map[schema.GroupResource]*crd.Definition {
	t.Helper()
	definitions := map[schema.GroupResource]*crd.Definition{}
	for _, name := range []string{"environments", "releases", "routes", "workloads"} {
		read, err := crd.ReadFile("../../testdata/crds/" + name + ".yaml")
		must(t, err)
		for _, d := range read {
			definitions[d.GroupResource()] = d
		}
	}
	return definitions
}

func (f *fixture) serve(source Source, options Options) {
	handler, err := NewHandler(source, options)
	must(f.t, err)
	f.handler, f.server = handler, httptest.NewServer(handler)
	f.t.Cleanup(f.server.Close)
	f.t.Cleanup(handler.Close) // ends the streams, because the server's Close waits for them
}

// browser returns a client with its own session.
func (f *fixture) browser() *http.Client {
	jar, err := cookiejar.New(nil)
	must(f.t, err)
	client := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(f.server.URL + f.handler.Login())
	must(f.t, err)
	_ = response.Body.Close()
	return client
}

func (f *fixture) load(object map[string]any) {
	f.t.Helper()
	must(f.t, f.cluster.Load(context.Background(), &unstructured.Unstructured{Object: object}))
}

// get requests a path, expects a status, and returns the body.
func (f *fixture) get(path string, status int) string {
	f.t.Helper()
	response, err := f.client.Get(f.server.URL + path)
	must(f.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(f.t, err)
	if response.StatusCode != status {
		f.t.Errorf("%s: %d, want %d: %s", path, response.StatusCode, status, body)
	}
	return string(body)
}

// getJSON decodes the response of an endpoint; arguments alternates names and values.
func getJSON[T any](s *fixture, endpoint string, arguments ...string) T {
	s.t.Helper()
	var out T
	must(s.t, json.Unmarshal([]byte(s.get(pageURL(endpoint, arguments...), http.StatusOK)), &out))
	return out
}

func pageURL(endpoint string, arguments ...string) string {
	values := url.Values{}
	for pair := range slices.Chunk(arguments, 2) {
		values.Set(pair[0], pair[1])
	}
	return "/api/" + endpoint + "?" + values.Encode()
}

// streamURL returns the path of a stream of types. With arguments, the stream also has the changes that
// they select.
func streamURL(arguments ...string) string {
	if i := slices.Index(arguments, "changes"); i >= 0 {
		ask := pageURL("", slices.Delete(slices.Clone(arguments), i, i+2)...)
		return pageURL("stream", "ask", ask[strings.Index(ask, "?")+1:])
	}
	return pageURL("stream", arguments...)
}

// openStream opens a stream and returns its events: name and data.
func (f *fixture) openStream(arguments ...string) <-chan [2]string {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		f.server.URL+streamURL(arguments...), nil)
	must(f.t, err)
	response, err := f.client.Do(request)
	must(f.t, err)
	events, done := make(chan [2]string), make(chan struct{})
	f.t.Cleanup(func() { cancel(); <-done })
	go func() { // ends with cancel or the stream
		defer close(done)
		defer close(events)
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 16<<20)
		name := ""
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				name = text
			} else if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				select {
				case events <- [2]string{name, data}:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return events
}

// awaitEvent returns the data of the next event with a name for which matches returns true.
func awaitEvent(t *testing.T, events <-chan [2]string, name string, matches func(data string) bool) string {
	t.Helper()
	end := time.After(testTimeout)
	for {
		select {
		case event, ok := <-events:
			if !ok {
				t.Fatalf("the stream ended before event %s", name)
			}
			if event[0] == name && matches(event[1]) {
				return event[1]
			}
		case <-end:
			t.Fatalf("timed out waiting for the event %s", name)
		}
	}
}

func anyText(string) bool { return true }

// update patches an object of the cluster with a merge patch.
func (f *fixture) update(gvr schema.GroupVersionResource, namespace, name, patch string) {
	f.t.Helper()
	_, err := f.cluster.Client().Resource(gvr).Namespace(namespace).Patch(context.Background(), name,
		"application/merge-patch+json", []byte(patch), metav1.PatchOptions{FieldManager: "tester"})
	if err != nil {
		f.t.Fatal(fmt.Errorf("patch %s: %w", name, err))
	}
}

// eventually polls a condition that has no event.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	end := time.After(testTimeout)
	for !holds() {
		select {
		case <-ticker.C:
		case <-end:
			t.Fatal("timed out")
		}
	}
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
