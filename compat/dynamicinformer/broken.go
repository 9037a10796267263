package dynamicinformer

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/dynamiclister"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/informer"
)

// failedInformer replaces an informer that could not be made, because client-go's signature has no error.
// Each of its requests fails with the error.
type failedInformer struct {
	cache.SharedIndexInformer
	gvr schema.GroupVersionResource
}

var _ informers.GenericInformer = (*failedInformer)(nil)

func newFailedInformer(gvr schema.GroupVersionResource, err error) *failedInformer {
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(context.Context,
			metav1.ListOptions) (runtime.Object, error) {
			return nil, err
		},
		WatchFuncWithContext: func(context.Context,
			metav1.ListOptions) (watch.Interface, error) {
			return nil, err
		},
	}
	return &failedInformer{
		SharedIndexInformer: informer.New(listWatch, informer.Options{
			ExampleObject: &unstructured.Unstructured{}, ObjectDescription: gvr.String(),
		}),
		gvr: gvr,
	}
}

// Informer implements informers.GenericInformer.
func (b *failedInformer) Informer() cache.SharedIndexInformer { return b.SharedIndexInformer }

// Lister implements informers.GenericInformer. It is empty.
func (b *failedInformer) Lister() cache.GenericLister {
	return dynamiclister.NewRuntimeObjectShim(dynamiclister.New(b.GetIndexer(), b.gvr))
}
