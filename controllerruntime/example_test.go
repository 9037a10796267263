package controllerruntime_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/controllerruntime"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/readapi"
)

// storage stands for a cluster with some config maps.
func storage() *readapi.Storage {
	s := readapi.NewStorage(readapi.StorageOptions{})
	err := s.SetType(readapi.Type{Namespaced: true, Versions: []readapi.Version{{Name: "v1"}}, Names: crd.Names{Plural: "configmaps", Kind: "ConfigMap"}})
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"blue", "green"} {
		_, err := s.Apply(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "web", "name": name},
			"data": map[string]any{"color": name},
		}})
		if err != nil {
			panic(err)
		}
	}
	return s
}

// In a manager, ctrl.Options{NewCache: controllerruntime.NewCache} is all it takes.
func ExampleNewCache() {
	config := readapi.Config(readapi.NewHandler(storage(), readapi.HandlerOptions{}))
	c, err := controllerruntime.NewCache(config, cache.Options{})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go c.Start(ctx) // ended by cancel
	c.WaitForCacheSync(ctx)

	var found corev1.ConfigMap
	if err := c.Get(ctx, client.ObjectKey{Namespace: "web", Name: "green"}, &found); err != nil {
		panic(err)
	}
	fmt.Println(found.Name, found.Data["color"])
	// Output: green green
}

func ExampleNewCacheFunc() {
	indexes, err := indexers.Parse(indexers.Source{Name: "indexes.yaml", Data: []byte(`
apiVersion: crdcache.dev/v1alpha1
kind: IndexConfig
metadata: {name: example}
spec:
  resources:
  - name: configs
    match: {group: "", resource: configmaps}
    indexes:
    - {name: color, path: .data.color}
`)})
	if err != nil {
		panic(err)
	}
	newCache := controllerruntime.NewCacheFunc(controllerruntime.Options{Indexes: indexes})
	config := readapi.Config(readapi.NewHandler(storage(), readapi.HandlerOptions{}))
	c, err := newCache(config, cache.Options{})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go c.Start(ctx) // ended by cancel
	c.WaitForCacheSync(ctx)

	var blue corev1.ConfigMapList
	if err := c.List(ctx, &blue, client.MatchingFields{"color": "blue"}); err != nil {
		panic(err)
	}
	fmt.Println(len(blue.Items), blue.Items[0].Name)
	// Output: 1 blue
}
