package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
	"github.com/crdcache/crdcache/serving/readapi"
	"github.com/crdcache/crdcache/test/testcluster"
)

// gadgetsDefinition returns the CRD of gadgets with these versions. The first one is the storage version.
func gadgetsDefinition(versions ...string) *unstructured.Unstructured {
	var versionSpecs []any
	for i, name := range versions {
		versionSpecs = append(versionSpecs, map[string]any{
			"name": name, "served": true, "storage": i == 0,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object",
				"x-kubernetes-preserve-unknown-fields": true}},
		})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "gadgets." + demoGroup},
		"spec": map[string]any{
			"group": demoGroup, "scope": "Cluster", "names": map[string]any{"plural": "gadgets",
				"singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
			"versions": versionSpecs,
		},
	}}
}

// TestBind verifies that types of patterns and names are served while they exist.
func TestBind(t *testing.T) {
	cluster, err := testcluster.New(t.Context(),
		testcluster.Options{Paths: []string{"../../../testdata/crds", "../../../testdata/objects"}})
	if err != nil {
		t.Fatal(err)
	}
	s, tracker := newTrackedFixture(t, cluster, cluster.Config(), nil)
	ctx, cancel := context.WithCancel(context.Background())
	selection, err := discovery.NewSelection("*."+demoGroup, "namespaces", "secrets", "later.example.com")
	s.must(err)
	changes := make(chan string)
	report := func(text string) {
		select {
		case changes <- text:
		case <-ctx.Done():
		}
	}
	binding, err := s.server.Bind(
		bind.Settings{Selection: selection, Exclude: func(r discovery.Resource) error {
			if r.GVR.Resource == "secrets" || r.GVR.Resource == "releases" {
				return errors.New("not this one")
			}
			return nil
		}},
		bind.Options{OnChange: func(old, changed *bind.Target) {
			if old != nil {
				report("dropped " + old.Type.String())
			}
			if changed != nil {
				report("kept " + changed.Type.String())
			}
		}, OnProblem: func(name string, why error) { report("refused " + name + ": " + why.Error()) }})
	s.must(err)
	s.runBinding(ctx, cancel, tracker, binding)
	expectReports := func(wants ...string) {
		t.Helper()
		for _, want := range wants {
			select {
			case got := <-changes:
				if !strings.HasPrefix(got, want) {
					t.Errorf("the binding reports %q, want %q", got, want)
				}
			case <-t.Context().Done():
				t.Fatalf("timed out waiting until the binding reports %q", want)
			}
		}
	}
	expectReports("kept namespaces.v1.", "kept environments.v1.", "kept routes.v1.", "kept workloads.v1.",
		"refused later.example.com: ", "refused secrets: not this one")
	gr := schema.GroupResource{Group: demoGroup, Resource: "gadgets"}
	s.must(cluster.Load(t.Context(), gadgetsDefinition("v1beta1")))
	expectReports("kept gadgets.v1beta1.")
	s.must(s.server.WaitForSync(t.Context(), gr))
	if gadget := binding.Type(gr); gadget == nil || gadget.GVR.Version != "v1beta1" ||
		len(binding.Targets()) != 5 || !binding.Reconciled() {
		t.Errorf("%d types are served and the widget type is %+v, want 5 types and v1beta1",
			len(binding.Targets()), gadget)
	}
	s.must(cluster.Load(t.Context(), gadgetsDefinition("v1beta1", "v1")))
	expectReports("dropped gadgets.v1beta1.", "kept gadgets.v1.")
	s.must(cluster.Client().Resource(crd.GVR).Delete(t.Context(), gr.String(), metav1.DeleteOptions{}))
	expectReports("dropped gadgets.v1.")
	if binding.Type(gr) != nil || s.server.Serves(gr) {
		t.Error("a deleted type is still served")
	}
	if problems := binding.Problems(); len(problems) != 2 {
		t.Errorf("Problems() = %v, want 2", problems)
	}
	if _, err := s.server.Bind(bind.Settings{}, bind.Options{}); err == nil {
		t.Error("Bind() without a selection succeeded, want an error")
	}
}

// TestListOnlyTypesAreServed verifies that a type that can be listed but not watched is cached by name and
// not by pattern, that queries have all changes, and that the API server answers its other requests.
func TestListOnlyTypesAreServed(t *testing.T) {
	cluster, err := testcluster.New(t.Context(), testcluster.Options{Paths: []string{"../../../testdata/crds"}})
	if err != nil {
		t.Fatal(err)
	}
	s, tracker := newTrackedFixture(t, cluster, readapi.Config(apitest.WithoutCoreWatches(cluster)), nil)
	ctx, cancel := context.WithCancel(context.Background())
	selection, err := discovery.NewSelection("*", "namespaces")
	s.must(err)
	decided := make(chan struct{})
	binding, err := s.server.Bind(bind.Settings{Selection: selection}, bind.Options{
		OnChange: func(_, changed *bind.Target) {
			if changed.GVR == namespaces {
				close(decided)
			}
		}, OnProblem: func(name string, why error) {
			t.Errorf("%s is rejected: %v", name, why)
			close(decided)
		}})
	s.must(err)
	s.runBinding(ctx, cancel, tracker, binding)
	<-decided
	if err := s.server.WaitForSync(t.Context(), namespaces.GroupResource()); err != nil {
		t.Fatal(err)
	}
	for _, served := range binding.Targets() {
		if served.GVR.Group == "" && served.GVR != namespaces {
			t.Errorf("%s is cached, want only namespaces of the core group", served.Type)
		}
	}
	for i := range 3 {
		name := fmt.Sprint("later-", i)
		s.changeOtherType(name)
		w := get(t, s.server, QueryPath("", "v1", "", "namespaces")+"?keys=true")
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), name) {
			t.Errorf("query = %d %s, want %s", w.Code, w.Body, name)
		}
		if w = get(t, s.server, "/api/v1/namespaces"); w.Header().Get(ServedHeader) != "cluster" ||
			!strings.Contains(w.Body.String(), name) {
			t.Errorf("list = %d by %q: %s, want %s", w.Code, w.Header().Get(ServedHeader), w.Body, name)
		}
	}
}

// newTrackedFixture returns a fixture whose server has the types of a tracker.
func newTrackedFixture(t *testing.T, cluster *testcluster.Cluster, config *rest.Config,
	backend persistence.Backend) (*fixture, *discovery.Tracker) {
	t.Helper()
	f := &fixture{T: t, cluster: cluster}
	tracker, err := discovery.NewTracker(config, discovery.TrackerOptions{})
	f.must(err)
	f.factory, err = dynamicinformer.New(dynamicinformer.Options{Config: config, Types: tracker.Types(),
		Linger: -1, Persistence: backend})
	f.must(err)
	f.server, err = New(Options{Factory: f.factory, Types: tracker.Types(), Config: config})
	f.must(err)
	return f, tracker
}

// runBinding runs a tracker and a binding until the test ends.
func (f *fixture) runBinding(ctx context.Context, cancel func(), tracker *discovery.Tracker,
	binding *bind.Binding) {
	f.Helper()
	f.must(f.factory.Start(ctx))
	ended := make(chan struct{}, 2)
	go func() { _ = tracker.Run(ctx); ended <- struct{}{} }() // both end with cancel
	go func() { f.server.Run(ctx, binding, tracker); ended <- struct{}{} }()
	f.Cleanup(func() {
		cancel()
		<-ended
		<-ended
		f.server.Close()
		f.must(f.factory.Shutdown(context.Background()))
	})
}

// staleDiscovery is a cluster whose discovery reports all groups as stale while isStale is set.
type staleDiscovery struct {
	http.Handler
	isStale atomic.Bool
}

func (d *staleDiscovery) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if path := strings.TrimRight(r.URL.Path, "/"); path != "/apis" && path != "/api" {
		d.Handler.ServeHTTP(w, r)
		return
	}
	r.Header.Del("If-None-Match")
	r.Header.Del("Accept-Encoding")
	answer := httptest.NewRecorder()
	d.Handler.ServeHTTP(answer, r)
	w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
	text := answer.Body.String()
	if d.isStale.Load() {
		text = strings.ReplaceAll(text, `"freshness":"Current"`, `"freshness":"Stale"`)
	}
	if !json.Valid([]byte(text)) {
		http.Error(w, text, http.StatusInternalServerError)
		return
	}
	_, _ = w.Write([]byte(text))
}

// TestStaleDiscovery verifies that a pattern matches the types with a CustomResourceDefinition even if
// discovery of their group is stale, and other types as soon as discovery recovers.
func TestStaleDiscovery(t *testing.T) {
	cluster, err := testcluster.New(t.Context(),
		testcluster.Options{Paths: []string{"../../../testdata/crds", "../../../testdata/objects"}})
	if err != nil {
		t.Fatal(err)
	}
	staleServer := &staleDiscovery{Handler: cluster}
	staleServer.isStale.Store(true)
	config := readapi.Config(staleServer)
	s, tracker := newTrackedFixture(t, cluster, config, nil)
	ctx, cancel := context.WithCancel(context.Background())
	selection, err := discovery.NewSelection("*."+demoGroup, "*.apiextensions.k8s.io")
	s.must(err)
	served := make(chan string, 100)
	binding, err := s.server.Bind(bind.Settings{Selection: selection}, bind.Options{
		OnChange: func(_, changed *bind.Target) { served <- changed.GVR.Resource },
	})
	s.must(err)
	s.runBinding(ctx, cancel, tracker, binding)
	expectServed := func(wants ...string) {
		t.Helper()
		for _, want := range wants {
			select {
			case got := <-served:
				if got != want {
					t.Errorf("the binding serves %s, want %s", got, want)
				}
			case <-t.Context().Done():
				t.Fatalf("timed out waiting until the binding serves %s", want)
			}
		}
	}
	expectServed("environments", "releases", "routes", "workloads")
	if binding.Type(crd.GVR.GroupResource()) != nil {
		t.Error("the binding serves customresourcedefinitions while discovery is stale, want it not to")
	}
	staleServer.isStale.Store(false)
	tracker.Refresh()
	expectServed("customresourcedefinitions")
}
