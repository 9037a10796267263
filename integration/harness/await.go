package harness

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// awaitObject watches an object until it meets a condition. The object need not exist yet.
func awaitObject(ctx context.Context, resource dynamic.ResourceInterface, name string,
	met func(*unstructured.Unstructured) (bool, error)) error {
	_, err := watchtools.UntilWithSync(ctx, watchOf(resource, name), &unstructured.Unstructured{}, nil,
		func(event watch.Event) (bool, error) {
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type == watch.Deleted {
				return false, nil
			}
			return met(object)
		})
	if err != nil {
		return fmt.Errorf("watching %s: %w", name, err)
	}
	return nil
}

// awaitGone waits until no object of this name exists.
func awaitGone(ctx context.Context, resource dynamic.ResourceInterface, name string) error {
	absent := func(store cache.Store) (bool, error) { return len(store.ListKeys()) == 0, nil }
	_, err := watchtools.UntilWithSync(ctx, watchOf(resource, name), &unstructured.Unstructured{}, absent,
		func(event watch.Event) (bool, error) { return event.Type == watch.Deleted, nil })
	if err != nil {
		return fmt.Errorf("watching %s go: %w", name, err)
	}
	return nil
}

func watchOf(resource dynamic.ResourceInterface, name string) cache.ListerWatcher {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			return resource.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return resource.Watch(ctx, o)
		},
	}
}
