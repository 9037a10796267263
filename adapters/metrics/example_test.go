package metrics_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/adapters/metrics"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/serving/readapi"
)

// cluster is an API server with two widgets.
func cluster() *httptest.Server {
	storage := apiserver.NewStorage(apiserver.StorageOptions{})
	err := storage.SetType(readapi.Type{
		Group: "example.com", Names: crd.Names{Plural: "widgets", Kind: "Widget"}, Namespaced: true,
		Versions: []readapi.Version{{Name: "v1"}},
	})
	must(err)
	for _, name := range []string{"a", "b"} {
		_, err := storage.Apply(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1",
			"kind": "Widget", "metadata": map[string]any{"namespace": "web", "name": name}}})
		must(err)
	}
	return httptest.NewServer(readapi.NewHandler(storage, readapi.HandlerOptions{}))
}

// A program registers one collector for each factory, once.
func Example() {
	server := cluster()
	defer server.Close()
	ctx := context.Background()
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: &rest.Config{Host: server.URL}})
	must(err)
	defer factory.Shutdown(ctx)
	registry := prometheus.NewRegistry() // or prometheus.DefaultRegisterer
	registry.MustRegister(metrics.NewCollector(factory))

	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	if _, err := factory.ForResource(widgets); err != nil {
		fmt.Println(err)
		return
	}
	must(factory.Start(ctx))
	must(factory.WaitForSync(ctx))

	families, err := registry.Gather()
	must(err)
	for _, family := range families {
		if family.GetName() == "crdcache_objects" {
			fmt.Println(family.GetName(), family.GetMetric()[0].GetGauge().GetValue())
		}
	}

	// Output:
	// crdcache_objects 2
}

// must panics on an error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
