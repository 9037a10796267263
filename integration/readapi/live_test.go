package readapi_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/integration/harness"
	"github.com/crdcache/crdcache/readapi/live"
)

// newLivePair is newPair with a cache of the real API server in the place of a storage.
func newLivePair(t *testing.T) *pair {
	t.Helper()
	harness.Needs(t, harness.WatchList, harness.SelectableFields, harness.Wording)
	harness.InstallCRDs(t, harness.Read(t, testdata+"crds")...)
	harness.Apply(t, harness.Read(t, testdata+"objects")...)
	config := harness.Config(t)
	ctx, cancel := context.WithCancel(context.Background())
	tracker, err := discovery.NewTracker(config, discovery.TrackerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tracked := make(chan struct{})
	go func() { defer close(tracked); _ = tracker.Run(ctx) }() // ended by cancel
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: config, Types: tracker.Types()})
	if err != nil {
		t.Fatal(err)
	}
	server, err := live.New(live.Options{Factory: factory, Types: tracker.Types(), Config: config})
	if err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewServer(server)
	t.Cleanup(func() {
		listener.CloseClientConnections()
		listener.Close()
		server.Close()
		if err := factory.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		cancel()
		<-tracked
	})
	gvrs := []schema.GroupVersionResource{crd.GVR, {Version: "v1", Resource: "namespaces"}}
	for _, plural := range plurals {
		gvrs = append(gvrs, schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural})
	}
	for _, gvr := range gvrs {
		informer, err := factory.ForResource(gvr)
		if err == nil {
			err = server.Keep(informer)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := factory.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := factory.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, gvr := range gvrs {
		if err := server.WaitForSync(t.Context(), gvr.GroupResource()); err != nil {
			t.Fatal(err)
		}
	}
	return &pair{real: config, ours: &rest.Config{Host: listener.URL, QPS: -1}}
}
