package live

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestRestoredServer verifies that the API server is restored from a backup before the informer notices.
// Lists do not contain the lost objects, and watches from a lost version are refused once the cache is
// correct.
func TestRestoredServer(t *testing.T) {
	gadgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	const path = "/apis/example.com/v1/gadgets"
	gadget := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": map[string]any{"namespace": "a",
				"name": name},
		}}
	}
	cluster := apitest.New(t, apitest.Type{GVR: gadgets, Kind: "Gadget", Namespaced: true})
	cluster.Create(t, gadgets, gadget("kept"))
	restore := cluster.Backup(t)
	cluster.Create(t, gadgets, gadget("lost1"), gadget("lost2"))

	ctx, cancel := context.WithCancel(context.Background())
	tracker, err := discovery.NewTracker(cluster.Config(), discovery.TrackerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tracked := make(chan struct{})
	go func() { defer close(tracked); _ = tracker.Run(ctx) }() // ended by cancel
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: cluster.Config(),
		Types: tracker.Types()})
	if err != nil {
		t.Fatal(err)
	}
	server, err := New(Options{Factory: factory, Types: tracker.Types(), Config: cluster.Config(),
		FreshTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Close()
		_ = factory.Shutdown(context.Background())
		cancel()
		<-tracked
	})
	informer, err := factory.ForResource(gadgets)
	if err == nil {
		err = server.AddType(informer)
	}
	if err == nil {
		err = factory.Start(ctx)
	}
	if err == nil {
		err = server.WaitForSync(t.Context(), gadgets.GroupResource())
	}
	if err != nil {
		t.Fatal(err)
	}
	type list struct {
		Metadata struct{ ResourceVersion string }
		Items    []struct{}
	}
	var before, after list
	if err := json.Unmarshal(get(t, server, path).Body.Bytes(), &before); err != nil ||
		len(before.Items) != 3 {
		t.Fatalf("the list before the restore = %v, %v, want 3 objects", before, err)
	}

	historyBefore := informer.History()
	restore()
	if got := get(t, server, path); strings.Contains(got.Body.String(), "lost") {
		t.Errorf("the list before the relist = %d %s, want no lost objects", got.Code, got.Body)
	}
	cluster.CloseClientConnections()
	for history := historyBefore; history.Epoch == historyBefore.Epoch; history = informer.History() {
		select {
		case <-history.Next:
		case <-t.Context().Done():
			t.Fatal("timed out waiting for the informer's relist")
		}
	}
	if err := json.Unmarshal(get(t, server, path).Body.Bytes(), &after); err != nil || len(after.Items) != 1 {
		t.Errorf("the list after the restore = %v, %v, want 1 object", after, err)
	}
	lost := path + "?watch=true&timeoutSeconds=1&resourceVersion=" + before.Metadata.ResourceVersion
	if got := get(t, server, lost); got.Code != http.StatusGone {
		t.Errorf("a watch from a lost version = %d %s, want 410", got.Code, got.Body)
	}
}
