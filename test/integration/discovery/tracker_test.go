package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// TestManyDefinitionsAtOnce installs and deletes 500 CRDs. The number of requests must not grow with the
// number of changes.
func TestManyDefinitionsAtOnce(t *testing.T) {
	config, admin := harness.Config(t), newAdminClient(t)
	counting, requests := harness.CountRequests(config)
	tracker, events := startTracker(t, counting, discovery.TrackerOptions{})
	builtIn := tracker.Snapshot().Len()
	checkRequests(t, requests, 1, harness.FirstWatches(t))

	suffix := harness.Group(t)
	var specs []crdSpec
	for i := range 500 {
		specs = append(specs, crdSpec{
			group: fmt.Sprintf("g%02d.%s", i%50, suffix), plural: fmt.Sprintf("r%03ds",
				i), kind: fmt.Sprintf("R%03d", i),
			scope: "Namespaced", versions: []string{"v1"}, label: "many",
		})
	}
	began := time.Now()
	createDefinitions(t, admin, specs)
	missing := map[schema.GroupResource]bool{}
	for _, s := range specs {
		missing[s.resource()] = true
	}
	events.receiveUntil(func(e discovery.Event) bool {
		if isEstablished(e) {
			delete(missing, e.Type.GroupResource)
		}
		return len(missing) == 0
	})
	t.Logf("500 CRDs known after %v", time.Since(began))
	// On a busy machine, the API server ends watches that fall behind. If it no longer has their next event,
	// the tracker lists again.
	checkRequests(t, requests, fewLists, fewWatches)
	if got := tracker.Snapshot().Len(); got != builtIn+500 {
		t.Errorf("%d types, want %d", got, builtIn+500)
	}

	remaining := len(specs)
	definitions := admin.Resource(crd.GVR)
	// A busy API server has no time for all in one request.
	harness.Eventually(t, func(ctx context.Context) error {
		return definitions.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "test=many"})
	})
	events.receiveUntil(func(e discovery.Event) bool {
		if isRemoved(e) {
			remaining--
		}
		return remaining == 0
	})
	// A discovery round may still list them. They must not reappear.
	before := tracker.Status().Discovery.LastContact
	tracker.Refresh()
	harness.Eventually(t, func(context.Context) error {
		if !tracker.Status().Discovery.LastContact.After(before) {
			return errors.New("no discovery round yet")
		}
		return nil
	})
	if got := tracker.Snapshot().Len(); got != builtIn {
		t.Errorf("%d types, want %d", got, builtIn)
	}
	checkRequests(t, requests, fewLists, fewWatches)
}

// fewLists and fewWatches limit the requests for hundreds of changes.
const (
	fewLists   = 5
	fewWatches = 10
)

// checkRequests limits the requests since the tracker started.
func checkRequests(t *testing.T, requests *harness.Requests, lists, watches int) {
	t.Helper()
	const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	t.Logf("requests: %v", requests.All())
	if n := requests.Count("GET", crds); n > lists {
		t.Errorf("%d lists of CRDs, want at most %d", n, lists)
	}
	if n := requests.Count("WATCH", crds); n > watches {
		t.Errorf("%d watches of CRDs, want at most %d", n, watches)
	}
	if n := requests.Count("GET", "/apis"); n > 3 {
		t.Errorf("%d discovery rounds, want at most 3", n)
	}
}

// crdSpec describes a CRD. The first version is stored. Versions with the prefix "!" are not served.
type crdSpec struct {
	group, plural, kind, scope string
	label                      string // value of the label "test"
	shortNames                 []any
	versions                   []string
}

func (s crdSpec) name() string { return s.plural + "." + s.group }

func (s crdSpec) resource() schema.GroupResource {
	return schema.GroupResource{Group: s.group, Resource: s.plural}
}

func (s crdSpec) object() *unstructured.Unstructured {
	versions := []any{}
	for i, v := range s.versions {
		name, hidden := strings.CutPrefix(v, "!")
		versions = append(versions, map[string]any{
			"name": name, "served": !hidden, "storage": i == 0,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "x-kubernetes-preserve-unknown-fields": true,
			}},
		})
	}
	names := map[string]any{"plural": s.plural, "singular": strings.ToLower(s.kind), "kind": s.kind}
	if s.shortNames != nil {
		names["shortNames"] = s.shortNames
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": s.name(), "labels": map[string]any{"test": s.label}},
		"spec":     map[string]any{"group": s.group, "scope": s.scope, "names": names, "versions": versions},
	}}
}

func newAdminClient(t *testing.T) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(harness.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// createDefinitions installs definitions concurrently.
func createDefinitions(t *testing.T, c dynamic.Interface, specs []crdSpec) {
	t.Helper()
	work := make(chan crdSpec)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { // ends when specs are created
			for s := range work {
				if _, err := c.Resource(crd.GVR).Create(t.Context(), s.object(),
					metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, s := range specs {
		work <- s
	}
	close(work)
	wg.Wait()
}

// startTracker runs a tracker during the test and collects its events.
func startTracker(t *testing.T, config *rest.Config,
	options discovery.TrackerOptions) (*discovery.Tracker, *events) {
	t.Helper()
	tracker, err := discovery.NewTracker(config, options)
	if err != nil {
		t.Fatal(err)
	}
	e := &events{t: t, ch: make(chan discovery.Event, 100000)}
	tracker.Subscribe(func(event discovery.Event) { e.ch <- event })
	done := make(chan error, 1)
	ctx := t.Context()                       // ends before the cleanups
	go func() { done <- tracker.Run(ctx) }() // ends with ctx
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if err := tracker.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	e.receiveUntil(func(event discovery.Event) bool { return event.Action == discovery.Synced })
	return tracker, e
}

type events struct {
	t  *testing.T
	ch chan discovery.Event
}

// receiveUntil returns the events up to the first one that satisfies done.
func (e *events) receiveUntil(done func(discovery.Event) bool) []discovery.Event {
	e.t.Helper()
	patience, cancel := context.WithTimeout(e.t.Context(), 5*time.Minute)
	defer cancel()
	var got []discovery.Event
	for {
		select {
		case event := <-e.ch:
			got = append(got, event)
			if done(event) {
				return got
			}
		case <-patience.Done():
			e.t.Fatalf("timeout before the event; got %v", summary(got))
		}
	}
}

func isEstablished(e discovery.Event) bool {
	return e.Action != discovery.Removed && e.Type.Established
}
func isRemoved(e discovery.Event) bool { return e.Action == discovery.Removed }

func summary(list []discovery.Event) []string {
	var out []string
	for _, e := range list {
		out = append(out, fmt.Sprintf("%s %s", e.Action, e.Type.GroupResource))
	}
	return out
}
