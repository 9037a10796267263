package readapi_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/readapi"
)

// widgets is a type that no CustomResourceDefinition defines.
var widgets = readapi.Type{
	Group: "example.com", Names: crd.Names{Plural: "widgets", Kind: "Widget"}, Namespaced: true,
	Versions: []readapi.Version{{Name: "v1", SelectableFields: []string{".spec.color"}}},
}

func newStorage() *readapi.Storage {
	storage := readapi.NewStorage(readapi.StorageOptions{})
	if err := storage.SetType(widgets); err != nil {
		panic(err)
	}
	for _, object := range []string{
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"namespace":"web","name":"a"},"spec":{"color":"red"}}`,
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"namespace":"web","name":"b"},"spec":{"color":"green"}}`,
	} {
		if _, err := storage.ApplyJSON([]byte(object)); err != nil {
			panic(err)
		}
	}
	return storage
}

// Any client can read what a storage holds.
func Example() {
	server := httptest.NewServer(readapi.NewHandler(newStorage(), readapi.HandlerOptions{}))
	defer server.Close()

	client := dynamic.NewForConfigOrDie(&rest.Config{Host: server.URL})
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	list, err := client.Resource(gvr).List(context.Background(),
		metav1.ListOptions{FieldSelector: "spec.color=red"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, widget := range list.Items {
		fmt.Println(widget.GetNamespace(), widget.GetName())
	}
	_, err = client.Resource(gvr).Namespace("web").Get(context.Background(), "c", metav1.GetOptions{})
	fmt.Println(err)

	// Output:
	// web a
	// widgets.example.com "c" not found
}

// Within one process no socket is needed, not even for a watch.
func ExampleConfig() {
	storage := newStorage()
	client := dynamic.NewForConfigOrDie(readapi.Config(readapi.NewHandler(storage, readapi.HandlerOptions{})))
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	watch, err := client.Resource(gvr).Watch(ctx,
		metav1.ListOptions{ResourceVersion: storage.ResourceVersion()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer watch.Stop()
	storage.Delete(widgets.GroupResource(), "web", "a")
	event := <-watch.ResultChan()
	fmt.Println(event.Type, event.Object.GetObjectKind().GroupVersionKind().Kind)

	// Output:
	// DELETED Widget
}

// A reconciler's test needs no cluster: clients write by the rules for custom resources.
func ExampleHandlerOptions_writes() {
	handler := readapi.NewHandler(newStorage(), readapi.HandlerOptions{Writes: true})
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	client := dynamic.NewForConfigOrDie(readapi.Config(handler)).Resource(gvr).Namespace("web")

	ctx := context.Background()
	widget, err := client.Patch(ctx, "a", types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":["example.com/cleanup"]}}`), metav1.PatchOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := client.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	widget.SetFinalizers(nil)
	_, err = client.Update(ctx, widget, metav1.UpdateOptions{})
	fmt.Println("an old version:", apierrors.IsConflict(err))
	widget, err = client.Get(ctx, "a", metav1.GetOptions{})
	fmt.Println("still there:", err == nil && widget.GetDeletionTimestamp() != nil)
	widget.SetFinalizers(nil)
	_, err = client.Update(ctx, widget, metav1.UpdateOptions{})
	fmt.Println("cleaned up:", err)
	_, err = client.Get(ctx, "a", metav1.GetOptions{})
	fmt.Println(err)

	// Output:
	// an old version: true
	// still there: true
	// cleaned up: <nil>
	// widgets.example.com "a" not found
}
