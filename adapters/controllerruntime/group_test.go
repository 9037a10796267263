package controllerruntime

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// TestCachesOfAGroup verifies that caches of several clusters share one memory budget, as when
// multicluster-runtime creates them with one NewCacheFunc.
func TestCachesOfAGroup(t *testing.T) {
	group, err := dynamicinformer.NewGroup(dynamicinformer.GroupOptions{MemoryBudget: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	newCache := NewCacheFunc(Options{Group: group, Name: "cluster"})
	var stops []func()
	for n := range 3 {
		server := newServer(t)
		name := fmt.Sprint("from-", n)
		server.Create(t, configMaps, configMap("web", name))
		c, err := newCache(server.Config(), cache.Options{Mapper: newMapper()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Start(ctx) }() // ended by cancel
		stops = append(stops, func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		if !c.WaitForCacheSync(ctx) {
			t.Fatal("the cache has not synced")
		}
		var found corev1.ConfigMapList
		if err := c.List(ctx, &found); err != nil || len(found.Items) != 1 || found.Items[0].Name != name {
			t.Errorf("List() = %v, %v; want the object of its own cluster", found.Items, err)
		}
		if err := c.Get(ctx, client.ObjectKey{Namespace: "web", Name: name}, &corev1.ConfigMap{}); err != nil {
			t.Error(err)
		}
	}
	if stats := group.MemoryStats(); stats.Budget != 1<<20 || stats.Used == 0 {
		t.Errorf("MemoryStats() = %+v, want the budget and the memory of all caches", stats)
	}
	names := func() (names []string) {
		for name := range group.All() {
			names = append(names, name)
		}
		return names
	}
	if got, want := names(), []string{"cluster", "cluster (2)", "cluster (3)"}; !slices.Equal(got, want) {
		t.Errorf("the clusters are %q, want %q", got, want)
	}
	stops[1]()
	if got, want := names(), []string{"cluster", "cluster (3)"}; !slices.Equal(got, want) {
		t.Errorf("after a cache has ended, the clusters are %q, want %q", got, want)
	}
	stops[0]()
	stops[2]()
}
