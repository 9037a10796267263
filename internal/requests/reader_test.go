package requests

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/internal/packed"
)

// TestReader verifies that lists and events lack exactly the removed fields. With the client of client-go,
// the objects are whole.
func TestReader(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n"+`{"type":"ERROR","object":%s}`+"\n", jsonGadget,
				jsonExpired)
			return
		}
		fmt.Fprint(w, listBodies[0])
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL, QPS: -1}
	own, err := NewClient(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	pruner, err := packed.NewPruner(packed.Prune{Paths: []packed.Path{{{Key: "spec"}}}})
	if err != nil {
		t.Fatal(err)
	}
	stock := dynamic.NewForConfigOrDie(config)
	want, err := stock.Resource(gadgets).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want.Items[0].Object["spec"] == nil {
		t.Fatalf("the gadget %v has no spec to remove", want.Items[0])
	}
	for _, client := range []dynamic.Interface{stock, own} {
		if client == own {
			for k := range want.Items {
				unstructured.RemoveNestedField(want.Items[k].Object, "spec")
			}
		}
		reader := NewReader(client, NewRestoreDetector(), gadgets, pruner)
		list, err := reader.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Items, list.Items); diff != "" ||
			list.GetResourceVersion() != want.GetResourceVersion() ||
			*list.GetRemainingItemCount() != *want.GetRemainingItemCount() {
			t.Errorf("%T: the list has the metadata %v and items (-want +got):\n%s", client, list.Object, diff)
		}
		w, err := reader.Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		added, failed := <-w.ResultChan(), <-w.ResultChan()
		if diff := cmp.Diff(&want.Items[0], added.Object); diff != "" {
			t.Errorf("%T: the event has the object (-want +got):\n%s", client, diff)
		}
		if status, ok := failed.Object.(*metav1.Status); !ok || status.Code != http.StatusGone {
			t.Errorf("%T: the second event is %v, want 410", client, failed)
		}
		w.Stop()
	}
}
