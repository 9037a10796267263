//go:build !nextkubernetes

package experiment

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/adapters/controllerruntime"
)

// runtimeAdders add the caches of a cluster to a fleet.
var runtimeAdders = map[string]func(*fleet) func(*rest.Config, []Type) error{
	ControllerRuntime: func(f *fleet) func(*rest.Config, []Type) error {
		return f.addControllerRuntime(ctrlcache.New)
	},
	AdapterCache: func(f *fleet) func(*rest.Config, []Type) error {
		return f.addControllerRuntime(controllerruntime.NewCache)
	},
}

// controllerRuntime is controller-runtime's cache with its default options, which return deep copies.
type controllerRuntime struct {
	cache   ctrlcache.Cache
	kind    schema.GroupVersionKind
	handler cache.ResourceEventHandler
	keys    func() []string // set by Sync
}

func newControllerRuntime(o Options) (Cache, error) {
	kind := o.GVR.GroupVersion().WithKind(o.Kind)
	c, err := ctrlcache.New(o.Config, ctrlcache.Options{Mapper: mapperOf(Type{o.GVR, o.Kind})})
	if err != nil {
		return nil, err
	}
	return &controllerRuntime{cache: c, kind: kind, handler: o.handler()}, nil
}

func (c *controllerRuntime) Sync(ctx context.Context) error {
	informer, err := c.cache.GetInformer(ctx, exampleOf(c.kind), ctrlcache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	synced := []cache.InformerSynced{informer.HasSynced}
	if c.handler != nil {
		registration, err := informer.AddEventHandler(c.handler)
		if err != nil {
			return err
		}
		synced = append(synced, registration.HasSynced)
	}
	if shared, ok := informer.(cache.SharedIndexInformer); ok {
		c.keys = shared.GetStore().ListKeys
	}
	ended := make(chan error, 1)
	go func() { ended <- c.cache.Start(ctx) }() // ends with ctx
	if err := awaitSynced(ctx, synced...); err != nil {
		return err
	}
	select {
	case err := <-ended:
		return err
	default:
		return nil
	}
}

// exampleOf returns an empty object of a kind.
func exampleOf(kind schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u
}

func (c *controllerRuntime) Len() int { return len(c.Keys()) }

func (c *controllerRuntime) Keys() []string { return c.keys() }

func (c *controllerRuntime) Get(key string) (any, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, err
	}
	u := exampleOf(c.kind)
	return u, c.cache.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, u)
}

func (c *controllerRuntime) ListAll() (int, error) { return c.list() }

func (c *controllerRuntime) ListNamespace(namespace string) (int, error) {
	return c.list(client.InNamespace(namespace))
}

func (c *controllerRuntime) list(options ...client.ListOption) (int, error) {
	list := c.exampleList()
	err := c.cache.List(context.Background(), list, options...)
	return len(list.Items), err
}

func (c *controllerRuntime) exampleList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(c.kind.GroupVersion().WithKind(c.kind.Kind + "List"))
	return list
}

func (c *controllerRuntime) AddIndex() error {
	return c.cache.IndexField(context.Background(), exampleOf(c.kind), indexName,
		func(object client.Object) []string {
			values, _ := indexFunc(object)
			return values
		})
}

func (c *controllerRuntime) ByIndex(value string) (any, error) {
	list := c.exampleList()
	if err := c.cache.List(context.Background(), list, client.MatchingFields{indexName: value}); err != nil {
		return nil, err
	}
	return onlyElement(list.Items, value)
}

func (f *fleet) addControllerRuntime(newCache ctrlcache.NewCacheFunc) func(*rest.Config, []Type) error {
	return func(config *rest.Config, types []Type) error {
		caches, err := newCache(config, ctrlcache.Options{Mapper: mapperOf(types...)})
		if err != nil {
			return err
		}
		f.starts = append(f.starts, func(ctx context.Context) error {
			// ends with ctx; after an error, the caches do not sync
			go func() { _ = caches.Start(ctx) }()
			for _, t := range types {
				informer, err := caches.GetInformer(ctx, exampleOf(t.kind()),
					ctrlcache.BlockUntilSynced(false))
				shared, ok := informer.(cache.SharedIndexInformer)
				if err != nil || !ok {
					return fmt.Errorf("the informer is a %T: %w", informer, err)
				}
				f.add(shared, shared.HasSynced)
			}
			return nil
		})
		return nil
	}
}

// mapperOf returns a mapper that knows some types, so that discovery is not measured.
func mapperOf(types ...Type) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, t := range types {
		mapper.AddSpecific(t.kind(), t.GVR, t.GVR, meta.RESTScopeNamespace)
	}
	return mapper
}
