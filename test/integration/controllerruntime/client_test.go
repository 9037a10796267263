package controllerruntime_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
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

// TestConsistentClient reads its own writes through controller-runtime's client. The client's event handler
// decodes no object. The client records writes of unstructured objects as writes of structs, so the test uses
// only structs.
func TestConsistentClient(t *testing.T) {
	w := widgets{schema.GroupVersion{Group: harness.Group(t), Version: "v1"}}
	harness.InstallCRDs(t, harness.NewCRD(w.Group, "Widget"))
	shared := startCache(t, cache.Options{Scheme: w.scheme()})
	c, err := client.New(harness.Config(t), client.Options{Scheme: w.scheme(), Cache: &client.CacheOptions{
		Reader: shared, EnableReadYourWritesConsistency: new(true)}})
	if err != nil {
		t.Fatal(err)
	}
	o := w.typed()
	o.SetNamespace(harness.Namespace(t))
	o.SetName("a")
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		o.SetAnnotations(map[string]string{"a": fmt.Sprint(n)})
		if err := c.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		read := w.typed()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), read); err != nil ||
			read.GetResourceVersion() != o.GetResourceVersion() {
			t.Fatalf("Get() returned version %s, want the written version %s (%v)", read.GetResourceVersion(),
				o.GetResourceVersion(), err)
		}
	}
	all := shared.(*controllerruntime.Cache).Factory().Informers()[0].Handlers()
	if len(all) != 1 || !strings.Contains(all[0].Name, "ConsistencyHandler") || all[0].DecodesBecause != "" {
		t.Errorf("Handlers() = %+v, want one ConsistencyHandler that decodes nothing", all)
	}
}

// renewLease updates a Lease five times a second until the test ends, so that resource versions increase as
// in a cluster with controllers.
func renewLease(t testing.TB) {
	t.Helper()
	client, err := dynamic.NewForConfig(harness.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	leases := client.Resource(schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1",
		Resource: "leases"}).Namespace(harness.Namespace(t))
	ctx, cancel := context.WithCancel(context.Background())
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}}
	o.SetName("busy")
	o, err = leases.Create(ctx, o, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { // ended by the cleanup
		defer close(ended)
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			o.SetAnnotations(map[string]string{"n": fmt.Sprint(n)})
			updated, err := leases.Update(ctx, o, metav1.UpdateOptions{})
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			o = updated
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}
