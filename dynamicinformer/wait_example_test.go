package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/test/testcluster"
)

// started returns a running factory.
func started(ctx context.Context, host string, options dynamicinformer.Options) *dynamicinformer.Factory {
	options.Config = &rest.Config{Host: host}
	factory, err := dynamicinformer.New(options)
	must(err)
	must(factory.Start(ctx))
	return factory
}

// A component waits only for its own types.
func ExampleHandle_WaitForSync() {
	server := cluster()
	defer server.Close()
	ctx := context.Background()
	factory := started(ctx, server.URL, dynamicinformer.Options{})
	defer factory.Shutdown(ctx)

	for _, gvr := range []schema.GroupVersionResource{widgets, gadgets} {
		handle, err := factory.Acquire(gvr)
		must(err)
		defer handle.Release()
		fmt.Printf("%s: %v\n", gvr.Resource, handle.WaitForSync(ctx))
	}

	// Output:
	// widgets: <nil>
	// gadgets: not synced: gadgets.v1.example.com: Degraded (Forbidden): you may not list gadgets
}

// A required type is awaited, even if it must first be installed, or permission to read it granted.
func ExampleInformer_WaitForSync() {
	server := cluster()
	defer server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	factory := started(ctx, server.URL, dynamicinformer.Options{
		Defaults: dynamicinformer.ResourceOptions{Required: new(true)},
	})
	defer factory.Shutdown(ctx)

	informer := factory.MustForResource(widgets)
	must(factory.Start(ctx))
	if err := informer.WaitForSync(ctx); err != nil {
		fmt.Println(err) // the reason, and that the timeout has passed
		return
	}
	fmt.Println(len(informer.GetStore().ListKeys()), "widgets")

	// Output:
	// 2 widgets
}

// Wait until an informer has stopped.
func ExampleInformer_Stopped() {
	server := cluster()
	defer server.Close()
	ctx := context.Background()
	factory := started(ctx, server.URL, dynamicinformer.Options{Linger: -1})
	defer factory.Shutdown(ctx)

	handle, err := factory.Acquire(widgets)
	must(err)
	informer := handle.Informer()
	handle.Release()
	<-informer.Stopped()
	fmt.Println("stopped:", errors.Is(informer.WaitForSync(ctx), dynamicinformer.ErrStopped))

	// Output:
	// stopped: true
}

func ExampleFactory_Informers() {
	server := cluster()
	defer server.Close()
	ctx := context.Background()
	factory := started(ctx, server.URL, dynamicinformer.Options{})
	defer factory.Shutdown(ctx)

	for _, gvr := range []schema.GroupVersionResource{widgets, gadgets} {
		_, err := factory.Acquire(gvr)
		must(err)
	}
	for _, informer := range factory.Informers() {
		fmt.Println(informer.GVR().Resource)
	}

	// Output:
	// gadgets
	// widgets
}

// Reading a cache after a write: the cache shows the write once it has reached its resource version.
func ExampleInformer_WaitForVersion() {
	ctx := context.Background()
	api, err := testcluster.New(ctx, testcluster.Options{})
	must(err)
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: api.Config()})
	must(err)
	defer factory.Shutdown(ctx)
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	informer := factory.MustForResource(configMaps)
	must(factory.Start(ctx))

	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "a"}}}
	created, err := api.Client().Resource(configMaps).Namespace("default").Create(ctx, object,
		metav1.CreateOptions{})
	must(err)
	must(informer.WaitForVersion(ctx, created.GetResourceVersion()))
	fmt.Println(informer.GetStore().ListKeys())
	// Output: [default/a]
}

// A program that suspects lost events lists the type again.
func ExampleInformer_Relist() {
	server := cluster()
	defer server.Close()
	ctx := context.Background()
	factory := started(ctx, server.URL, dynamicinformer.Options{
		Defaults: dynamicinformer.ResourceOptions{Verify: 6 * time.Hour}}) // also compares periodically
	defer factory.Shutdown(ctx)

	informer := factory.MustForResource(widgets)
	must(factory.Start(ctx))
	must(informer.Relist(ctx))
	fmt.Println(informer.Snapshot().Len() > 0, informer.Status().Relists.Requested <= 1)
	// Output: true true
}
