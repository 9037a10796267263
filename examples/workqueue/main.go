// Command workqueue labels objects of types that it learns while it runs, with client-go's workqueue.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

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

// typeAnnotation of an Environment has the type of its objects: "workloads.v1.demo.crdcache.dev".
const typeAnnotation = "example.com/type"

var environments = schema.GroupVersionResource{Group: "demo.crdcache.dev", Version: "v1", Resource: "environments"}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err == nil {
		err = run(context.Background(), config)
	}
	log.Fatal(err)
}

// key is an element of the queue.
type key struct {
	gvr schema.GroupVersionResource
	cache.ObjectName
}

type operator struct {
	client  dynamic.Interface
	factory *dynamicinformer.Factory
	queue   workqueue.TypedRateLimitingInterface[key]
	watched map[schema.GroupVersionResource]*dynamicinformer.Handle // only the loop of run uses it
}

// run runs the operator until the context ends.
func run(ctx context.Context, config *rest.Config) error {
	client, err1 := dynamic.NewForConfig(config)
	factory, err2 := dynamicinformer.New(dynamicinformer.Options{Config: config, Linger: -1})
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	o := &operator{client, factory,
		workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[key]()),
		map[schema.GroupVersionResource]*dynamicinformer.Handle{}}
	if err := errors.Join(o.watch(environments), factory.Start(ctx), factory.WaitForSync(ctx)); err != nil {
		return err
	}
	context.AfterFunc(ctx, o.queue.ShutDown)
	for k, shutdown := o.queue.Get(); !shutdown; k, shutdown = o.queue.Get() {
		if err := o.reconcile(ctx, k); err == nil {
			o.queue.Forget(k)
		} else {
			log.Printf("Reconcile %s: %v", k.ObjectName, err)
			o.queue.AddRateLimited(k)
		}
		o.queue.Done(k)
	}
	return factory.Shutdown(context.WithoutCancel(ctx))
}

// watch watches a type, which need not be installed.
func (o *operator) watch(gvr schema.GroupVersionResource) error {
	if o.watched[gvr] != nil {
		return nil
	}
	handle, err := o.factory.Acquire(gvr, dynamicinformer.ResourceOptions{Indexers: cache.Indexers{
		"environment": func(obj any) ([]string, error) { return []string{field(obj, "spec", "environment")}, nil }}})
	if err != nil {
		return err
	}
	o.watched[gvr] = handle
	enqueue := func(obj any) {
		name, _ := cache.DeletionHandlingObjectToName(obj) // handlers get only objects and tombstones
		o.queue.Add(key{gvr, name})
	}
	_, err = handle.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: enqueue,
		UpdateFunc: func(_, obj any) { enqueue(obj) }, DeleteFunc: enqueue})
	return err
}

// reconcile labels an object, or enqueues those of an Environment. It reads only from the caches.
func (o *operator) reconcile(ctx context.Context, k key) error {
	handle := o.watched[k.gvr]
	switch {
	case k.gvr == environments:
		return o.reconcileTypes(k.Name)
	case handle == nil: // no Environment has the type any more
		return nil
	}
	object, isKnown, err := handle.Informer().GetStore().GetByKey(k.String())
	if err != nil || !isKnown {
		return err
	}
	store := o.watched[environments].Informer().GetStore()
	environment, isKnown, err := store.GetByKey(field(object, "spec", "environment"))
	if err != nil || !isKnown { // its creation enqueues the object
		return err
	}
	stage := field(environment, "spec", "stage")
	if field(object, "metadata", "labels", "stage") == stage {
		return nil
	}
	log.Printf("%s gets the stage %s", k, stage)
	_, err = o.client.Resource(k.gvr).Namespace(k.Namespace).Patch(ctx, k.Name, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"labels":{"stage":%q}}}`, stage), metav1.PatchOptions{FieldManager: "stages"})
	return err
}

// reconcileTypes watches the types of Environments, and no others. It enqueues the objects of one.
func (o *operator) reconcileTypes(environment string) (err error) {
	wanted := map[schema.GroupVersionResource]bool{environments: true}
	for _, e := range o.watched[environments].Informer().GetStore().List() {
		if gvr, _ := schema.ParseResourceArg(field(e, "metadata", "annotations", typeAnnotation)); gvr != nil {
			wanted[*gvr] = true
			err = errors.Join(err, o.watch(*gvr))
		}
	}
	for gvr, handle := range o.watched {
		objects, failure := handle.Informer().GetIndexer().ByIndex("environment", environment)
		for _, object := range objects {
			o.queue.Add(key{gvr, cache.MetaObjectToName(object.(metav1.Object))})
		}
		if err = errors.Join(err, failure); !wanted[gvr] {
			handle.Release()
			delete(o.watched, gvr)
		}
	}
	return err
}

// field returns a string field of an object, or "".
func field(obj any, path ...string) string {
	text, _, _ := unstructured.NestedString(obj.(*unstructured.Unstructured).Object, path...)
	return text
}
