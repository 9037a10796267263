package lifecycle_test

import (
	"context"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/serving/readapi"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// TestAggregatedAPI follows a type of an aggregated API. While its server is down, the objects stay. When its
// APIService is deleted, the cache keeps them and is not synced.
func TestAggregatedAPI(t *testing.T) {
	t.Parallel()
	gadgets := schema.GroupVersionResource{Group: harness.Group(t), Version: "v1", Resource: "gadgets"}
	server := harness.NewTLSServer(t, newAggregatedHandler(t, gadgets))
	s := newFixture(t, dynamicinformer.Options{}, nil)
	registration := harness.RegisterAPIService(t, gadgets.GroupVersion(), server.Port)
	i, j := s.startInformer(gadgets)
	first := s.awaitSynced(i, 1)
	s.createGadget(gadgets, "a")
	j.expect("add a")

	server.Stop()
	current := s.awaitState(i, status.Synced, status.ReasonRequestFailed)
	if current.Incarnation != first.Incarnation || !i.HasSynced() {
		t.Errorf("the status is %+v, want the same incarnation", current)
	}
	s.expectKeys(i, "default/a")
	j.expectNothing()
	server.Restart(t)
	s.createGadget(gadgets, "b")
	// A list may deliver the object a again.
	j.awaitLive("b")
	s.awaitSynced(i, 1)
	j.expectNever("delete a", "add a")

	if err := s.admin.Resource(harness.APIServices).Delete(s.ctx, registration.GetName(),
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// Without the APIService, the objects still exist in their API server.
	if current := s.awaitState(i, status.Pending, status.ReasonNotInstalled); !current.Suspended ||
		i.HasSynced() {
		t.Errorf("HasSynced() = %t, status %+v; want false, suspended", i.HasSynced(), current)
	}
	s.expectKeys(i, "default/a", "default/b")

	harness.Apply(t, registration)
	s.awaitSynced(i, 2)
	j.expectNever("delete a", "delete b")
}

func (s *fixture) createGadget(gvr schema.GroupVersionResource, name string) {
	s.Helper()
	gadget := &unstructured.Unstructured{Object: map[string]any{}}
	gadget.SetGroupVersionKind(gvr.GroupVersion().WithKind("Gadget"))
	gadget.SetName(name)
	harness.Eventually(s, func(ctx context.Context) error {
		_, err := s.admin.Resource(gvr).Namespace(metav1.NamespaceDefault).Create(ctx, gadget,
			metav1.CreateOptions{})
		return err
	})
}

// newAggregatedHandler returns an API server with one type, which can be written.
func newAggregatedHandler(t testing.TB, gvr schema.GroupVersionResource) http.Handler {
	t.Helper()
	storage := apiserver.NewStorage(apiserver.StorageOptions{})
	err := storage.SetType(readapi.Type{
		Group: gvr.Group, Namespaced: true, Versions: []readapi.Version{{Name: gvr.Version}},
		Names: crd.Names{Plural: gvr.Resource, Kind: "Gadget"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return readapi.NewHandler(storage.Writer(apiserver.WriterOptions{}), readapi.HandlerOptions{})
}
