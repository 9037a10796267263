// Command workqueue is an operator with client-go's workqueue. It labels each Workload with the stage of its
// Environment.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"

	"github.com/crdcache/crdcache/dynamicinformer"
)

var (
	workloadsGVR    = schema.GroupVersionResource{Group: "demo.crdcache.dev", Version: "v1", Resource: "workloads"}
	environmentsGVR = schema.GroupVersionResource{Group: "demo.crdcache.dev", Version: "v1", Resource: "environments"}
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	if err := run(ctx, config); err != nil {
		log.Fatal(err)
	}
}

// run runs the operator until the context ends.
func run(ctx context.Context, config *rest.Config) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: config})
	if err != nil {
		return err
	}
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())
	workloads, environments := factory.MustForResource(workloadsGVR), factory.MustForResource(environmentsGVR)
	enqueue := func(obj any) { queue.Add(cache.MetaObjectToName(obj.(metav1.Object))) }
	enqueueWorkloadsOf := func(environment any) {
		dependents, err := workloads.GetIndexer().ByIndex("environment",
			environment.(metav1.Object).GetName())
		if err != nil {
			log.Print(err)
		}
		for _, workload := range dependents {
			enqueue(workload)
		}
	}
	_, err1 := workloads.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, obj any) { enqueue(obj) },
	})
	_, err2 := environments.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueueWorkloadsOf, UpdateFunc: func(_, obj any) { enqueueWorkloadsOf(obj) },
	})
	err3 := workloads.AddIndexers(cache.Indexers{"environment": func(obj any) ([]string, error) {
		return []string{field(obj, "spec", "environment")}, nil
	}})
	if err := errors.Join(err1, err2, err3, factory.Start(ctx)); err != nil {
		return err
	}
	if err := factory.WaitForSync(ctx); err != nil {
		return err
	}

	context.AfterFunc(ctx, queue.ShutDown)
	for name, shutdown := queue.Get(); !shutdown; name, shutdown = queue.Get() {
		err := reconcile(ctx, name, client, workloads.Lister(), environments.Lister())
		switch {
		// A deleted Workload needs no label. The creation of an Environment enqueues its Workloads.
		case err == nil || apierrors.IsNotFound(err):
			queue.Forget(name)
		default:
			log.Printf("Reconcile %s: %v", name, err)
			queue.AddRateLimited(name)
		}
		queue.Done(name)
	}
	return factory.Shutdown(context.WithoutCancel(ctx))
}

// reconcile labels a Workload. It reads from the caches, and sends a request only if the label is wrong.
func reconcile(ctx context.Context, name cache.ObjectName, client dynamic.Interface,
	workloads, environments cache.GenericLister) error {
	workload, err := workloads.ByNamespace(name.Namespace).Get(name.Name)
	if err != nil {
		return err
	}
	environment, err := environments.Get(field(workload, "spec", "environment"))
	if err != nil {
		return err
	}
	stage := field(environment, "spec", "stage")
	if field(workload, "metadata", "labels", "stage") == stage {
		return nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"stage":%q}}}`, stage)
	_, err = client.Resource(workloadsGVR).Namespace(name.Namespace).Patch(ctx, name.Name,
		types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "stages"})
	if err == nil {
		log.Printf("%s has the stage %s", name, stage)
	}
	return err
}

// field returns a string field of an object, or "".
func field(obj any, path ...string) string {
	text, _, _ := unstructured.NestedString(obj.(*unstructured.Unstructured).Object, path...)
	return text
}
