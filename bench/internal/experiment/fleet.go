package experiment

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	clientgo "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// Type is a type of a fleet.
type Type struct {
	GVR  schema.GroupVersionResource
	Kind string
}

// fleet is caches of many types, which run until the context that was given to Sync ends.
type fleet struct {
	start func(ctx context.Context) error
	// synced has a function for each cache that reports whether it is filled, and stores its content; both
	// are complete once start has returned.
	synced []cache.InformerSynced
	stores []interface{ ListKeys() []string }
}

// newFleet returns the caches of some types with a subject's default options. It sends no requests.
func newFleet(name string, config *rest.Config, types []Type) (*fleet, error) {
	switch name {
	case ClientGo:
		return newClientGoFleet(config, types)
	case ControllerRuntime:
		return newControllerRuntimeFleet(config, types)
	case Packed:
		return newFactoryFleet(config, types)
	}
	return nil, fmt.Errorf("%s is not measured with many types", name)
}

// Sync starts the caches and returns when they are synced. It calls readable when all caches serve objects,
// including persisted ones.
func (f *fleet) Sync(ctx context.Context, readable func()) error {
	if err := f.start(ctx); err != nil {
		return err
	}
	err := awaitSynced(ctx, f.synced...)
	readable()
	return err
}

// Len returns the number of objects of all types.
func (f *fleet) Len() int {
	objects := 0
	for _, s := range f.stores {
		objects += len(s.ListKeys())
	}
	return objects
}

func (f *fleet) add(informer cache.SharedIndexInformer) {
	f.synced = append(f.synced, informer.HasSynced)
	f.stores = append(f.stores, informer.GetStore())
}

func newClientGoFleet(config *rest.Config, types []Type) (*fleet, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := clientgo.NewDynamicSharedInformerFactory(client, 0)
	f := &fleet{start: func(ctx context.Context) error {
		factory.Start(ctx.Done())
		return nil
	}}
	for _, t := range types {
		f.add(factory.ForResource(t.GVR).Informer())
	}
	return f, nil
}

func newFactoryFleet(config *rest.Config, types []Type) (*fleet, error) {
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: config})
	if err != nil {
		return nil, err
	}
	f := &fleet{start: factory.Start}
	for _, t := range types {
		informer, err := factory.ForResource(t.GVR)
		if err != nil {
			return nil, err
		}
		f.add(informer)
	}
	return f, nil
}

func newControllerRuntimeFleet(config *rest.Config, types []Type) (*fleet, error) {
	// This mapper knows the types, so discovery is not measured.
	var versions []schema.GroupVersion
	for _, t := range types {
		versions = append(versions, t.GVR.GroupVersion())
	}
	mapper := meta.NewDefaultRESTMapper(versions)
	for _, t := range types {
		mapper.AddSpecific(t.GVR.GroupVersion().WithKind(t.Kind), t.GVR, t.GVR, meta.RESTScopeNamespace)
	}
	caches, err := ctrlcache.New(config, ctrlcache.Options{Mapper: mapper})
	if err != nil {
		return nil, err
	}
	f := &fleet{}
	f.start = func(ctx context.Context) error {
		// ends with ctx; after an error, the caches do not sync
		go func() { _ = caches.Start(ctx) }()
		for _, t := range types {
			example := &unstructured.Unstructured{}
			example.SetGroupVersionKind(t.GVR.GroupVersion().WithKind(t.Kind))
			informer, err := caches.GetInformer(ctx, example, ctrlcache.BlockUntilSynced(false))
			if err != nil {
				return err
			}
			shared, ok := informer.(cache.SharedIndexInformer)
			if !ok {
				return fmt.Errorf("the informer is a %T", informer)
			}
			f.add(shared)
		}
		return nil
	}
	return f, nil
}
