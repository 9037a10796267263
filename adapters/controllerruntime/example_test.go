package controllerruntime_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crdcache/crdcache/adapters/controllerruntime"
	"github.com/crdcache/crdcache/adapters/shard"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/serving/readapi"
	"github.com/crdcache/crdcache/test/testcluster"
)

// newCluster returns a cluster with two ConfigMaps.
func newCluster() *testcluster.Cluster {
	ctx := context.Background()
	cluster, err := testcluster.New(ctx, testcluster.Options{WithoutBuiltIns: true, Types: []readapi.Type{{
		Namespaced: true, Versions: []readapi.Version{{Name: "v1"}},
		Names: crd.Names{Plural: "configmaps", Kind: "ConfigMap"},
	}}})
	must(err)
	for _, name := range []string{"blue", "green"} {
		err := cluster.Load(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "web",
				"name": name},
			"data": map[string]any{"color": name},
		}})
		must(err)
	}
	return cluster
}

// In a manager, set ctrl.Options{NewCache: controllerruntime.NewCache}.
func ExampleNewCache() {
	api := newCluster().Config()
	c, err := controllerruntime.NewCache(api, cache.Options{})
	must(err)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go c.Start(ctx) // ended by cancel
	c.WaitForCacheSync(ctx)

	var found corev1.ConfigMap
	must(c.Get(ctx, client.ObjectKey{Namespace: "web", Name: "green"}, &found))
	fmt.Println(found.Name, found.Data["color"])
	// Output: green green
}

func ExampleNewCacheFunc() {
	indexes, err := indexers.Parse(indexers.Source{Name: "indexes.yaml", Data: []byte(`
apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: example}
spec:
  resources:
  - name: configs
    match: {group: "", resource: configmaps}
    indexes:
    - {name: color, path: .data.color}
`)})
	must(err)
	newCache := controllerruntime.NewCacheFunc(controllerruntime.Options{Indexes: indexes})
	api := newCluster().Config()
	c, err := newCache(api, cache.Options{})
	must(err)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go c.Start(ctx) // ended by cancel
	c.WaitForCacheSync(ctx)

	var blue corev1.ConfigMapList
	must(c.List(ctx, &blue, client.MatchingFields{"color": "blue"}))
	fmt.Println(len(blue.Items), blue.Items[0].Name)
	// Output: 1 blue
}

// The cache has one ConfigMap, and two after a change of its settings.
func ExampleCache_SetTypeSettings() {
	of := func(color string) dynamicinformer.Selector {
		return dynamicinformer.Selector{Field: fields.OneTermEqualSelector("metadata.name", color)}
	}
	c, err := controllerruntime.New(newCluster().Config(),
		cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}: {Field: of("blue").Field}}}, controllerruntime.Options{})
	must(err)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go c.Start(ctx) // ended by cancel
	c.WaitForCacheSync(ctx)

	var all corev1.ConfigMapList
	err = c.List(ctx, &all)
	fmt.Println(len(all.Items), err)
	err = c.SetTypeSettings(ctx, &corev1.ConfigMap{}, controllerruntime.TypeSettings{
		AnyOf: []dynamicinformer.Selector{of("blue"), of("green")}})
	must(err)
	err = c.List(ctx, &all)
	fmt.Println(len(all.Items), err)
	// Output:
	// 1 <nil>
	// 2 <nil>
}

// The second of two replicas of a StatefulSet has half of the shards. With a shard.Member as Assigner, the
// replicas assign the shards with Leases instead.
func ExampleSharding() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cluster, err := testcluster.New(ctx, testcluster.Options{})
	must(err)
	for _, o := range []struct{ kind, namespace, name string }{{"Namespace", "", "web"},
		{"ConfigMap", "web", "green"}, {"ConfigMap", "default", "green"}} {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": o.kind,
			"metadata": map[string]any{"namespace": o.namespace, "name": o.name}}}
		must(cluster.Load(ctx, object))
	}

	fixed, err := shard.Static(1, 2, shard.DefaultShards)
	must(err)
	sharding, err := controllerruntime.NewSharding(controllerruntime.ShardingOptions{Assigner: fixed,
		Key: sharding.ByNamespace})
	must(err)
	mgr, err := ctrl.NewManager(cluster.Config(), ctrl.Options{
		NewCache:   controllerruntime.NewCacheFunc(controllerruntime.Options{Sharding: sharding}),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	must(err)
	reconciler := reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
		fmt.Println(r, "is in shard", controllerruntime.OwnershipFrom(ctx).Shard())
		cancel()
		return reconcile.Result{}, nil
	})
	err = errors.Join(mgr.Add(sharding),
		ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).
			Complete(sharding.Reconciler(&corev1.ConfigMap{}, reconciler)))
	must(err)
	fmt.Println(mgr.Start(ctx))
	// Output:
	// default/green is in shard 58
	// <nil>
}

// must panics on an error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
