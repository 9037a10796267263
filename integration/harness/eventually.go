package harness

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

const pollInterval = 50 * time.Millisecond

// Eventually polls until check returns nil. If that takes too long, it fails the test with the last error.
// Use it only if the API offers no watch.
func Eventually(t testing.TB, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	if err := eventually(ctx, check); err != nil {
		t.Fatal(err)
	}
}

func eventually(ctx context.Context, check func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

func isAPIServerReady(t testing.TB) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	client, err := rest.UnversionedRESTClientFor(unversioned(Config(t)))
	if err != nil {
		t.Fatal(err)
	}
	return client.Get().AbsPath("/readyz").Do(ctx).Error() == nil
}

// unversioned prepares a configuration for requests by path.
func unversioned(config *rest.Config) *rest.Config {
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return config
}

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
