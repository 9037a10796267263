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
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/crdcache/crdcache/adapters/controllerruntime/internal/convert"
)

// Get reads an object into out. The caller owns the result, unless UnsafeDisableDeepCopy is set. If the cache
// does not have the object, the error satisfies apierrors.IsNotFound; before Start it is a
// *cache.ErrCacheNotStarted. If another user of the factory has stopped the informer, it wraps
// dynamicinformer.ErrStopped. A reduced object is read from the API server: see ReducedGet.
//
// The first read of a type starts its informer and waits for it, unless ReaderFailOnMissingInformer is set.
// Get does not wait for a type whose CRD was deleted: it returns NotFound. If the server no longer serves the
// version, the objects may exist, and the error is a *meta.NoKindMatchError.
func (c *Cache) Get(ctx context.Context, key client.ObjectKey, out client.Object,
	opts ...client.GetOption) error {
	return c.get(ctx, nil, key, out, opts...)
}

// get is Get after the writes of a log.
func (c *Cache) get(ctx context.Context, written *writeLog, key client.ObjectKey, out client.Object,
	opts ...client.GetOption) error {
	r, scoped, stored, err := c.findStored(ctx, written, key, out)
	if err != nil {
		return err
	}
	converter := r.converter
	if reflect.TypeOf(out) != converter.Pointer {
		return fmt.Errorf("cache had type %s, but %T was asked for", converter.Pointer, out)
	}
	options := client.GetOptions{}
	options.ApplyOptions(opts)
	value, found := reflect.ValueOf(out).Elem(), convert.Result{Stored: stored,
		Shared: scoped.mayShareObjects, KeptFields: scoped.keptFields(stored)}
	if share := ptr.Deref(options.UnsafeDisableDeepCopy, false); !found.Reduced() {
		return converter.Write(value, found, share)
	} else {
		return c.getReduced(ctx, r, scoped, key, value, found, share)
	}
}

// findStored returns the stored object with a key, of the type and form of example, after the writes of a
// log.
func (c *Cache) findStored(ctx context.Context, written *writeLog, key client.ObjectKey,
	example client.Object) (r *resource, scoped *scopedInformer, stored any, err error) {
	gvk, err := apiutil.GVKForObject(example, c.scheme)
	if err != nil {
		return nil, nil, nil, err
	}
	r, started, err := c.resourceToRead(ctx, gvk, example)
	if err != nil {
		return nil, nil, nil, err
	}
	err = r.read(func(s *informerSet) error {
		if scoped = s.forNamespace(key.Namespace); scoped == nil {
			return errUnknownNamespace("get", key)
		}
		if !started {
			return &cache.ErrCacheNotStarted{}
		}
		if err := r.awaitInformers(ctx, scoped); err != nil {
			return err
		}
		target := key
		if !r.namespaced {
			target.Namespace = ""
		}
		return written.await(ctx, r, target, scoped)
	})
	if err == nil {
		stored, err = r.stored(scoped, key)
	}
	return r, scoped, stored, err
}

// resourceToRead returns the resource for reads of objects like object.
func (c *Cache) resourceToRead(ctx context.Context, gvk schema.GroupVersionKind,
	object runtime.Object) (r *resource, started bool, err error) {
	key := resourceKey{gvk, convert.FormOf(object)}
	if c.failOnMissing {
		if r, state := c.lookup(key); r == nil {
			return nil, state != cacheNew, &cache.ErrResourceNotCached{GVK: gvk}
		}
	}
	return c.resource(ctx, key, object)
}

func (r *resource) stored(scoped *scopedInformer, key client.ObjectKey) (any, error) {
	content, name := scoped.informer().Snapshot(), toolscache.ObjectName(key)
	stored, ok := content.Lookup(name)
	if !ok && name.Namespace != "" {
		// Cluster-scoped types ignore the namespace. The scope may have changed since the first read.
		name.Namespace = ""
		stored, ok = content.Lookup(name)
	}
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: r.key.gvk.Group,
			Resource: r.key.gvk.Kind}, key.Name)
	}
	return stored, nil
}

// errContinue has the same text as the error of the stock cache.
var errContinue = errors.New("continue list option is not supported by the cache")

// List writes the objects that the options select into list, in no particular order, as copies like Get.
// Labels and fields are compared without decoding. A field selector must be exact, and each field needs an
// index from IndexField or from the config. Limit truncates the result, and there is no continue token.
//
// The result is a consistent snapshot of each namespace with a watch of its own, or of all namespaces with
// a common one. List waits like Get. It fails if a selected object does not fit the Go type.
func (c *Cache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.list(ctx, nil, list, (&client.ListOptions{}).ApplyOptions(opts))
}

// list is List after the writes of a log.
func (c *Cache) list(ctx context.Context, written *writeLog, list client.ObjectList,
	options *client.ListOptions) error {
	r, err := c.resourceToList(ctx, list, options)
	if err != nil {
		return err
	}
	var results []convert.Result
	err = r.read(func(s *informerSet) error {
		informers, err := r.informersToList(ctx, written, s, options.Namespace)
		if err == nil {
			results, err = r.find(informers, *options)
		}
		return err
	})
	if err == nil {
		err = r.converter.FillList(list, results, ptr.Deref(options.UnsafeDisableDeepCopy, false))
	}
	if err == nil {
		list.SetContinue("continue-not-supported")
	}
	return err
}

// resourceToList returns the resource of the items of a list.
func (c *Cache) resourceToList(ctx context.Context, list client.ObjectList,
	options *client.ListOptions) (*resource, error) {
	gvk, err := apiutil.GVKForObject(list, c.scheme)
	if err != nil {
		return nil, err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	item, err := c.itemOf(gvk, list)
	if err != nil {
		return nil, err
	}
	r, _, err := c.resourceToRead(ctx, gvk, item)
	if err == nil && options.Continue != "" {
		err = errContinue
	}
	return r, err
}

// informersToList returns the synced informers of a set for a list, after the writes of a log.
func (r *resource) informersToList(ctx context.Context, written *writeLog, s *informerSet,
	requested string) ([]*scopedInformer, error) {
	var namespace types.NamespacedName
	informers := s.informersByNamespace
	if requested != "" && r.namespaced {
		v := s.forNamespace(requested)
		if v == nil {
			return nil, errUnknownNamespace("list", requested)
		}
		namespace.Namespace, informers = requested, []*scopedInformer{v}
	}
	if !r.cache.hasStarted() {
		return nil, &cache.ErrCacheNotStarted{}
	}
	if err := r.awaitInformers(ctx, informers...); err != nil {
		return nil, err
	}
	return informers, written.await(ctx, r, namespace, informers...)
}

// itemOf returns an empty item of a list.
func (c *Cache) itemOf(gvk schema.GroupVersionKind, list client.ObjectList) (runtime.Object, error) {
	var item runtime.Object = &unstructured.Unstructured{}
	switch convert.FormOf(list) {
	case convert.Typed:
		return c.scheme.New(gvk)
	case convert.Metadata:
		item = &metav1.PartialObjectMetadata{}
	}
	item.GetObjectKind().SetGroupVersionKind(gvk)
	return item, nil
}
