package live

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/serving/readapi"
	"github.com/crdcache/crdcache/test/testcluster"
)

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
