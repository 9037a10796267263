package readapi_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// newCachePair is newPair with a cache of the real API server instead of an in-memory cluster.
func newCachePair(t *testing.T) *serverPair {
	t.Helper()
	loadManifests(t)
	config := harness.Config(t)
	gvrs := []schema.GroupVersionResource{crd.GVR, {Version: "v1", Resource: "namespaces"}}
	for _, plural := range plurals {
		gvrs = append(gvrs, schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural})
	}
	server, err := harness.StartCacheServer(config, gvrs...)
	if err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewServer(server)
	t.Cleanup(func() {
		listener.CloseClientConnections()
		listener.Close()
		if err := server.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := server.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &serverPair{apiServer: config, crdcache: &rest.Config{Host: listener.URL, QPS: -1}}
}
