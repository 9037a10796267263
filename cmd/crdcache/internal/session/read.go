package session

import (
	"context"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/discovery"
)

const (
	// maxGets is the number of objects up to which objects are read one by one. Above it the type is listed.
	maxGets = 100
	// parallelGets bounds the concurrent requests.
	parallelGets = 10
)

// Read calls take with each existing object among keys, one call at a time. It lists the type in pages if
// there are many keys or if get is forbidden. An empty namespace means all.
func (t *Types) Read(ctx context.Context, resource discovery.Resource, namespace string, keys []string,
	take func(key string, object *unstructured.Unstructured)) error {
	ctx, cancel := t.reader.Limit(ctx)
	defer cancel()
	if len(keys) <= maxGets {
		err := t.getAll(ctx, resource, keys, take)
		if !apierrors.IsForbidden(err) {
			return t.explainError(ctx, err)
		}
	}
	return t.explainError(ctx, t.listMatching(ctx, resource, namespace, keys, take))
}

func (t *Types) explainError(ctx context.Context, err error) error {
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) {
		return err
	}
	return t.reader.Explain(ctx, err)
}

// getAll reads objects one by one. It returns the first error.
func (t *Types) getAll(ctx context.Context, resource discovery.Resource, keys []string,
	take func(string, *unstructured.Unstructured)) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	slots := make(chan struct{}, parallelGets)
	var taking sync.Mutex
	var getting sync.WaitGroup
	for _, key := range keys {
		slots <- struct{}{}
		getting.Go(func() { // ended by the request, which fail cancels
			defer func() { <-slots }()
			at, err := cache.ParseObjectName(key)
			if err != nil {
				fail(err)
				return
			}
			from := t.clientOf(resource.GVR).Resource(resource.GVR).Namespace(at.Namespace)
			object, err := from.Get(ctx, at.Name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
			case err != nil:
				fail(err)
			default:
				taking.Lock()
				defer taking.Unlock()
				take(key, object)
			}
		})
	}
	getting.Wait()
	return context.Cause(ctx)
}

// listMatching lists the type and visits the objects with the keys.
func (t *Types) listMatching(ctx context.Context, resource discovery.Resource,
	namespace string, keys []string,
	take func(string, *unstructured.Unstructured)) error {
	requested := make(map[string]bool, len(keys))
	for _, key := range keys {
		requested[key] = true
	}
	if resource.Scope != discovery.Namespaced {
		namespace = ""
	}
	from := t.clientOf(resource.GVR).Resource(resource.GVR).Namespace(namespace)
	options := metav1.ListOptions{Limit: chunkSize}
	for {
		page, err := from.List(ctx, options)
		if err != nil {
			return err
		}
		for i := range page.Items {
			object := &page.Items[i]
			if key := cache.MetaObjectToName(object).String(); requested[key] {
				take(key, object)
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}
