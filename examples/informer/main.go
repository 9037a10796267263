// Command informer prints the Workloads of a cluster until an interrupt.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/crdcache/crdcache/dynamicinformer"
)

func main() {
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt)
	config := must(clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")))
	factory := must(dynamicinformer.New(dynamicinformer.Options{Config: config}))
	gvr := schema.GroupVersionResource{Group: "demo.crdcache.dev", Version: "v1", Resource: "workloads"}
	workloads := factory.MustForResource(gvr)
	must(workloads.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { fmt.Println("added", must(cache.ObjectToName(obj))) },
		DeleteFunc: func(obj any) { fmt.Println("deleted", must(cache.DeletionHandlingObjectToName(obj))) },
	}))
	must(0, factory.Start(ctx)) // follows the CRD: it may be installed, deleted and created again at any time
	<-ctx.Done()
	must(0, factory.Shutdown(context.Background())) // after all events have been handled
	fmt.Println(len(workloads.GetStore().ListKeys()), "workloads are still readable")
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
