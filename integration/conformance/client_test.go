package conformance_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// client is a dynamic client that lists and watches through what a scenario prepared, its faults included, and
// can do nothing else.
type client struct {
	dynamic.Interface
	lw cache.ListerWatcher
}

func (c client) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return resource{lw: cache.ToListerWatcherWithContext(c.lw)}
}

type resource struct {
	dynamic.NamespaceableResourceInterface
	lw cache.ListerWatcherWithContext
}

func (r resource) List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	obj, err := r.lw.ListWithContext(ctx, o)
	if err != nil {
		return nil, err
	}
	list, ok := obj.(*unstructured.UnstructuredList)
	if !ok {
		return nil, fmt.Errorf("the scenario lists a %T", obj)
	}
	return list, nil
}

func (r resource) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return r.lw.WatchWithContext(ctx, o)
}
