package session

import (
	"context"
	"errors"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/discovery"
)

const (
	// gotAtMost is how many objects of a type are got one by one; of more, all of the type are listed.
	gotAtMost = 100
	// parallelGets bounds the requests at a time.
	parallelGets = 10
)

// Read reads the objects of a type that have these keys, and calls take with each that is there, one at a
// time. Namespace (empty: all) has all of them. Who may not get them, or where there are many, gets them from
// a list, page by page.
func (t *Types) Read(ctx context.Context, of discovery.Resource, namespace string, keys []string,
	take func(key string, object *unstructured.Unstructured)) error {
	ctx, cancel := t.reader.Target.Limit(ctx)
	defer cancel()
	if len(keys) <= gotAtMost {
		err := t.getAll(ctx, of, keys, take)
		if !apierrors.IsForbidden(err) {
			return t.explained(ctx, err)
		}
	}
	return t.explained(ctx, t.pick(ctx, of, namespace, keys, take))
}

func (t *Types) explained(ctx context.Context, err error) error {
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) {
		return err
	}
	return t.reader.Target.Explain(ctx, err)
}

// getAll gets objects one by one. The error is the first one.
func (t *Types) getAll(ctx context.Context, of discovery.Resource, keys []string,
	take func(string, *unstructured.Unstructured)) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	slots := make(chan struct{}, parallelGets)
	var taking sync.Mutex
	var getting sync.WaitGroup
	for _, key := range keys {
		slots <- struct{}{}
		getting.Go(func() { // ended by its request, which fail ends
			defer func() { <-slots }()
			var from dynamic.ResourceInterface = t.Client.Resource(of.GVR)
			name := key
			if namespace, inside, found := strings.Cut(key, "/"); found {
				from, name = t.Client.Resource(of.GVR).Namespace(namespace), inside
			}
			object, err := from.Get(ctx, name, metav1.GetOptions{})
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

// pick lists the objects of a type.
func (t *Types) pick(ctx context.Context, of discovery.Resource, namespace string, keys []string,
	take func(string, *unstructured.Unstructured)) error {
	wanted := make(map[string]bool, len(keys))
	for _, key := range keys {
		wanted[key] = true
	}
	var from dynamic.ResourceInterface = t.Client.Resource(of.GVR)
	if namespace != "" && of.Scope == discovery.Namespaced {
		from = t.Client.Resource(of.GVR).Namespace(namespace)
	}
	options := metav1.ListOptions{Limit: chunkSize}
	for {
		page, err := from.List(ctx, options)
		if err != nil {
			return err
		}
		for i := range page.Items {
			object := &page.Items[i]
			key := object.GetName()
			if object.GetNamespace() != "" {
				key = object.GetNamespace() + "/" + key
			}
			if wanted[key] {
				take(key, object)
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}
