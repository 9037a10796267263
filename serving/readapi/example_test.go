package readapi_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/serving/readapi"
	"github.com/crdcache/crdcache/test/testcluster"
)

// widgets is a type that no CustomResourceDefinition defines.
var widgets = readapi.Type{
	Group: "example.com", Names: crd.Names{Plural: "widgets", Kind: "Widget"}, Namespaced: true,
	Versions: []readapi.Version{{Name: "v1", SelectableFields: []string{".spec.color"}}},
}

func newWidgetCluster(ctx context.Context) *testcluster.Cluster {
	cluster, err := testcluster.New(ctx, testcluster.Options{WithoutBuiltIns: true,
		Types: []readapi.Type{widgets}})
	must(err)
	for name, color := range map[string]any{"a": "red", "b": "green"} {
		err := cluster.Load(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget",
			"metadata": map[string]any{"namespace": "web", "name": name},
			"spec":     map[string]any{"color": color},
		}})
		must(err)
	}
	return cluster
}

// Any client can read the objects of a Backend.
func Example() {
	server := httptest.NewServer(newWidgetCluster(context.Background()))
	defer server.Close()

	client := dynamic.NewForConfigOrDie(&rest.Config{Host: server.URL})
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	list, err := client.Resource(gvr).List(context.Background(),
		metav1.ListOptions{FieldSelector: "spec.color=red"})
	must(err)
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
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	client := dynamic.NewForConfigOrDie(readapi.Config(newWidgetCluster(ctx))).Resource(gvr).Namespace("web")
	widget, err := client.Get(ctx, "a", metav1.GetOptions{})
	must(err)
	watch, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: widget.GetResourceVersion(),
		FieldSelector: "metadata.name=a"})
	must(err)
	defer watch.Stop()
	must(client.Delete(ctx, "a", metav1.DeleteOptions{}))
	event := <-watch.ResultChan()
	fmt.Println(event.Type, event.Object.GetObjectKind().GroupVersionKind().Kind)

	// Output:
	// DELETED Widget
}

// must panics on an error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
