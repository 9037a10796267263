package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// Remove unread fields, and get the memory of the remaining ones.
func ExamplePrune() {
	server := cluster()
	defer server.Close()
	ctx := context.Background()
	factory, err := dynamicinformer.New(dynamicinformer.Options{
		Config: &rest.Config{Host: server.URL},
		Defaults: dynamicinformer.ResourceOptions{Prune: dynamicinformer.Prune{
			Presets: []dynamicinformer.PrunePreset{dynamicinformer.PruneManagedFields,
				dynamicinformer.PruneLastApplied},
			Paths: []string{".status.history[*].log"},
		}},
	})
	must(err)
	defer factory.Shutdown(ctx)
	informer := factory.MustForResource(widgets)
	must(factory.Start(ctx))
	must(factory.WaitForSync(ctx))

	stats := informer.Stats()
	fmt.Println(stats.Objects, "objects,", stats.Storage, stats.ObjectBytes < 1000)

	// Output: 2 objects, packed true
}

// Handle each object when it arrives, and store none.
func ExampleStorageMode() {
	server := cluster()
	defer server.Close()
	ctx := context.Background()
	factory, err := dynamicinformer.New(dynamicinformer.Options{
		Config: &rest.Config{Host: server.URL},
		Defaults: dynamicinformer.ResourceOptions{
			Storage: dynamicinformer.Storage{Mode: dynamicinformer.StorageNone}},
	})
	must(err)
	defer factory.Shutdown(ctx)
	informer := factory.MustForResource(widgets)
	colors := map[string]string{}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		u := obj.(*unstructured.Unstructured)
		colors[u.GetName()], _, _ = unstructured.NestedString(u.Object, "spec", "color")
	}})
	must(err)
	must(factory.Start(ctx))
	must(factory.WaitForSync(ctx))
	must(informer.Flush(ctx))

	_, err = informer.Lister().Get("web/a")
	fmt.Println(len(colors), "objects,", informer.Snapshot().Len(), "keys,",
		errors.Is(err, dynamicinformer.ErrNotStored))

	// Output: 2 objects, 2 keys, true
}

// Store two fields of each object.
func ExampleKeep() {
	server := cluster()
	defer server.Close()
	ctx := context.Background()
	factory, err := dynamicinformer.New(dynamicinformer.Options{
		Config: &rest.Config{Host: server.URL},
		Defaults: dynamicinformer.ResourceOptions{Keep: dynamicinformer.Keep{
			Paths: []string{".spec.color", ".status.history[*].phase"}}},
	})
	must(err)
	defer factory.Shutdown(ctx)
	informer := factory.MustForResource(widgets)
	must(factory.Start(ctx))
	must(factory.WaitForSync(ctx))

	for _, obj := range informer.GetStore().List() {
		fmt.Println(obj.(*unstructured.Unstructured).Object["spec"])
	}

	// Unordered output:
	// map[color:blue]
	// map[color:red]
}

// Put keys into a queue without decoding anything.
func ExampleMetadataOnly() {
	server := cluster()
	defer server.Close()
	ctx := context.Background()
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: &rest.Config{Host: server.URL}})
	must(err)
	defer factory.Shutdown(ctx)
	informer := factory.MustForResource(widgets)

	keys := make(chan string, 10)
	_, err = informer.AddEventHandler(dynamicinformer.MetadataOnly(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if key, err := cache.MetaNamespaceKeyFunc(obj); err == nil {
				keys <- key
			}
		},
	}))
	must(err)
	must(factory.Start(ctx))

	fmt.Println(<-keys)
	fmt.Println(<-keys)
	fmt.Println("decoded:", informer.Stats().Misses)

	// Unordered output:
	// web/a
	// web/b
	// decoded: 0
}

// Compress objects that are rarely read, and limit all caches together to 256 MB of heap.
func ExampleOptions_memoryBudget() {
	server := cluster()
	defer server.Close()
	ctx := context.Background()
	factory, err := dynamicinformer.New(dynamicinformer.Options{
		Config:       &rest.Config{Host: server.URL},
		MemoryBudget: 256 << 20,
		Defaults: dynamicinformer.ResourceOptions{Storage: dynamicinformer.Storage{
			Mode: dynamicinformer.StorageAdaptive, Compression: s2.New(),
		}},
	})
	must(err)
	defer factory.Shutdown(ctx)
	factory.MustForResource(widgets)
	must(factory.Start(ctx))
	must(factory.WaitForSync(ctx))

	memory := factory.MemoryStats()
	fmt.Println(memory.Used < memory.Budget, memory.OverBudget)

	// Output: true 0
}

// Bound the queue of a slow handler: the updates that wait arrive as one.
func ExampleCoalesce() {
	server := cluster()
	defer server.Close()
	ctx := context.Background()
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: &rest.Config{Host: server.URL}})
	must(err)
	defer factory.Shutdown(ctx)
	informer := factory.MustForResource(widgets)

	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if key, err := cache.MetaNamespaceKeyFunc(obj); err == nil {
				fmt.Println("added:", key)
			}
		},
		UpdateFunc: func(oldObj, newObj any) {
			// oldObj is the state of the last call, however many updates there were.
		},
	}
	_, err = informer.AddEventHandler(dynamicinformer.Coalesce(handler))
	must(err)
	must(factory.Start(ctx))
	must(factory.WaitForSync(ctx))
	must(informer.Flush(ctx))
	fmt.Println("merged:", informer.Handlers()[0].Coalesced)

	// Unordered output:
	// added: web/a
	// added: web/b
	// merged: 0
}
