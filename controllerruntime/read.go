package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Get writes the object of a key into out: a copy that is the caller's own, unless UnsafeDisableDeepCopy is
// set. An object that is decoded is not copied on top of it. What the cache does not have is an error that
// apierrors.IsNotFound knows; before Start it is a *cache.ErrCacheNotStarted. An object that does not fit out
// is an error that names it, and leaves others readable. Where somebody who shares the factory has stopped
// the informer, it is a dynamicinformer.ErrStopped.
//
// Asking for a type for the first time starts its informer, unless ReaderFailOnMissingInformer is set, and
// waits for it. Get does not wait for a type that is known to be gone since: none of its objects is found
// then.
func (c *Cache) Get(ctx context.Context, key client.ObjectKey, out client.Object,
	opts ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(out, c.scheme)
	if err != nil {
		return err
	}
	r, started, err := c.reading(ctx, gvk, out)
	if err != nil {
		return err
	}
	v := r.in(key.Namespace)
	if v == nil {
		return errUnknownNamespace("get", key)
	}
	if !started {
		return &cache.ErrCacheNotStarted{}
	}
	if err := r.awaitViews(ctx, out, v); err != nil {
		return err
	}
	stored, err := r.stored(v, key)
	if err != nil {
		return err
	}
	if reflect.TypeOf(out) != r.form.pointer {
		return fmt.Errorf("cache had type %s, but %T was asked for", r.form.pointer, out)
	}
	options := client.GetOptions{}
	options.ApplyOptions(opts)
	if v.shares || ptr.Deref(options.UnsafeDisableDeepCopy, false) {
		return r.form.share(reflect.ValueOf(out).Elem(), stored)
	}
	return r.form.copy(reflect.ValueOf(out).Elem(), stored)
}

// reading returns the resource of an object that is to be read.
func (c *Cache) reading(ctx context.Context, gvk schema.GroupVersionKind,
	object runtime.Object) (r *resource, started bool, err error) {
	key := resourceKey{gvk, kindOfForm(object)}
	if c.failOnMissing {
		if r, state := c.known(key); r == nil {
			return nil, state != cacheFresh, &cache.ErrResourceNotCached{GVK: gvk}
		}
	}
	return c.resource(ctx, key, object)
}

// stored returns the object of a key as a view stores it. The error is NotFound if there is none.
func (r *resource) stored(v *view, key client.ObjectKey) (any, error) {
	content, name := v.informer().Snapshot(), toolscache.ObjectName(key)
	stored, ok := content.Lookup(name)
	if !ok && name.Namespace != "" {
		// For a cluster-scoped type the namespace does not count. The type may have had another scope when it
		// was first read.
		name.Namespace = ""
		stored, ok = content.Lookup(name)
	}
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: r.key.gvk.Group,
			Resource: r.key.gvk.Kind}, key.Name)
	}
	return stored, nil
}

// errContinue is for what a cache cannot do.
var errContinue = errors.New("continue list option is not supported by the cache")

// List writes the objects that the options select into list, in no particular order: copies as Get makes
// them. Labels are compared, and fields looked up, without decoding what is not selected. Field selectors
// have to be exact, each over a field of IndexField or an index by configuration. Limit cuts the result off;
// there is no way to continue.
//
// What one List returns of one namespace, or of all where they are followed together, is of one moment. It
// waits as Get does, and an object that does not fit is an error.
func (c *Cache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(list, c.scheme)
	if err != nil {
		return err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	item, err := c.itemOf(gvk, list)
	if err != nil {
		return err
	}
	r, started, err := c.reading(ctx, gvk, item)
	if err != nil {
		return err
	}
	options := client.ListOptions{}
	options.ApplyOptions(opts)
	if options.Continue != "" {
		return errContinue
	}
	views := r.all()
	if options.Namespace != "" && r.namespaced {
		v := r.in(options.Namespace)
		if v == nil {
			return errUnknownNamespace("list", options.Namespace)
		}
		views = []*view{v}
	}
	if !started {
		return &cache.ErrCacheNotStarted{}
	}
	if err := r.awaitViews(ctx, item, views...); err != nil {
		return err
	}
	found, err := r.find(views, options)
	if err != nil {
		return err
	}
	if err := r.form.fill(list, found, ptr.Deref(options.UnsafeDisableDeepCopy, false)); err != nil {
		return err
	}
	list.SetContinue("continue-not-supported")
	return nil
}

// itemOf returns an object of the form that the items of a list have.
func (c *Cache) itemOf(gvk schema.GroupVersionKind, list client.ObjectList) (runtime.Object, error) {
	switch kindOfForm(list) {
	case unstructuredForm:
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		return u, nil
	case metadataForm:
		m := &metav1.PartialObjectMetadata{}
		m.SetGroupVersionKind(gvk)
		return m, nil
	}
	return c.scheme.New(gvk)
}
