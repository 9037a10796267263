package session

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestWatchRefused verifies that a type that can be listed but not watched counts as read, whether the
// refusal arrives before or after the check.
func TestWatchRefused(t *testing.T) {
	statuses, otherTypes := schema.GroupVersionResource{Version: "v1",
		Resource: "componentstatuses"}, schema.GroupVersionResource{Version: "v1", Resource: "others"}
	server := apitest.New(t, apitest.Type{GVR: statuses, Kind: "ComponentStatus"},
		apitest.Type{GVR: otherTypes, Kind: "Other"})
	server.Create(t, statuses, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ComponentStatus", "metadata": map[string]any{"name": "etcd-0"},
	}})
	const path = "/api/v1/componentstatuses"
	server.AddFaults(apitest.Fault{Path: path, Verb: "watch-list", Status: http.StatusMethodNotAllowed},
		apitest.Fault{Path: path, Verb: "watch", Status: http.StatusMethodNotAllowed})
	// Lists of the other type fail until the watch of this type was refused.
	server.AddFaults(apitest.Fault{Path: "/api/v1/others", Status: http.StatusServiceUnavailable})
	refused := func(_, after status.Status) {
		if after.GVR == statuses && after.State == status.Degraded {
			server.RepairPath("/api/v1/others")
		}
	}
	caches, err := NewCaches(OneClient(server.Client(t)), []discovery.Resource{{GVR: otherTypes},
		{GVR: statuses}},
		CacheOptions{Listener: status.Listener{StateChanged: refused}})
	if err != nil {
		t.Fatal(err)
	}
	// Close does not wait for a handler that does not return.
	gate := make(chan struct{})
	defer close(gate)
	defer caches.Close()
	handler := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-gate }}
	_, err = caches.All[1].Informer.AddEventHandler(handler)
	if err != nil {
		t.Fatal(err)
	}
	if err := caches.Sync(t.Context(), &Target{}); err != nil {
		t.Error(err)
	}
	if len(caches.Synced) != 2 {
		t.Errorf("%d types have been read, want both", len(caches.Synced))
	}
}
