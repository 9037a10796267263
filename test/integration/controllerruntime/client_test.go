package controllerruntime_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/adapters/controllerruntime"
	"github.com/crdcache/crdcache/adapters/shard"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// startCacheWith returns a cache and the config of its server.
func startCacheWith(t *testing.T,
	options controllerruntime.Options) (*controllerruntime.Cache, *rest.Config) {
	t.Helper()
	config := harness.Config(t)
	config.QPS = -1
	c, err := controllerruntime.New(config, cache.Options{}, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }() // ended by the cleanup
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if !c.WaitForCacheSync(ctx) {
		t.Fatal("timed out waiting for the cache's sync")
	}
	return c, config
}

func newConsistentClient(t *testing.T, config *rest.Config, reader client.Reader,
	options client.Options) client.Client {
	t.Helper()
	options.Cache = &client.CacheOptions{Reader: reader, Unstructured: true,
		EnableReadYourWritesConsistency: new(true)}
	made, err := controllerruntime.NewClient(config, options)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestReadYourWritesSharded verifies that deleting an object of another shard does not block later lists. A
// client for dry runs never waits.
func TestReadYourWritesSharded(t *testing.T) {
	assigner, err := shard.Static(0, 64, 64)
	if err != nil {
		t.Fatal(err)
	}
	s, err := controllerruntime.NewSharding(controllerruntime.ShardingOptions{Assigner: assigner,
		Key: sharding.ByUID, Objects: []client.Object{&corev1.ConfigMap{}}})
	if err != nil {
		t.Fatal(err)
	}
	namespace := harness.Namespace(t)
	renewLease(t)
	sharded, config := startCacheWith(t, controllerruntime.Options{Sharding: s})
	c := newConsistentClient(t, config, sharded, client.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }() // ended by cancel
	for n := range 3 {                    // these objects are nearly always in other shards
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("a", n)}}
		if err := c.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
		if err := c.Delete(ctx, o); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var list corev1.ConfigMapList
		if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil || len(list.Items) != 0 {
			t.Fatalf("List() = %d objects, %v, want none", len(list.Items), err)
		}
		t.Logf("the list took %v", time.Since(began))
	}
	dryRun := newConsistentClient(t, config, sharded, client.Options{DryRun: new(true)})
	if err := dryRun.List(ctx, &corev1.ConfigMapList{}); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
