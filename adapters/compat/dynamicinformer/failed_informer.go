package dynamicinformer

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/dynamiclister"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/informer"
)

// failedInformer replaces an informer that could not be created, because client-go's signature has no error.
// Its lists and watches fail with the error of the creation.
type failedInformer struct {
	cache.SharedIndexInformer
	gvr schema.GroupVersionResource
}

func newFailedInformer(gvr schema.GroupVersionResource, err error) *failedInformer {
	list := func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, err }
	open := func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, err }
	listWatch := &cache.ListWatch{ListWithContextFunc: list, WatchFuncWithContext: open}
	return &failedInformer{
		SharedIndexInformer: informer.New(informer.InlineWatcherOf(listWatch), informer.Options{
			ObjectDescription: gvr.String()}),
		gvr: gvr,
	}
}

func (f *failedInformer) Informer() cache.SharedIndexInformer { return f.SharedIndexInformer }

// Lister implements informers.GenericInformer. The lister is empty.
func (f *failedInformer) Lister() cache.GenericLister {
	return dynamiclister.NewRuntimeObjectShim(dynamiclister.New(f.GetIndexer(), f.gvr))
}
