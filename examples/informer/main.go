// Command informer prints the Workloads of a cluster.
package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/crdcache/crdcache/dynamicinformer"
)

func main() {
	ctx := context.Background()
	config := must(clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")))
	factory := must(dynamicinformer.New(dynamicinformer.Options{
		Config:   config,
		Defaults: dynamicinformer.ResourceOptions{Required: new(true)}, // wait until the type can be read
	}))
	gvr := schema.GroupVersionResource{Group: "demo.crdcache.dev", Version: "v1", Resource: "workloads"}
	workloads := factory.MustForResource(gvr)
	must(workloads.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { fmt.Println("added", obj.(*unstructured.Unstructured).GetName()) },
	}))
	must(0, factory.Start(ctx))
	must(0, factory.WaitForSync(ctx)) // the error names each type that is not synced, and why
	must(0, factory.Shutdown(ctx))    // after all events have been handled; the cache stays readable
	fmt.Println(len(workloads.GetStore().ListKeys()), "workloads")
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
