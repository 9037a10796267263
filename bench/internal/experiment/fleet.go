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
	"github.com/crdcache/crdcache/storage/s2"
)

// Type is a type of a fleet.
type Type struct {
	GVR  schema.GroupVersionResource
	Kind string
}

// fleet is caches of many types, which run until the context that was given to Sync ends.
type fleet struct {
	starts []func(ctx context.Context) error
	// synced has a function for each cache that reports whether it is filled, and stores its content; both
	// are complete once all starts have returned.
	synced []cache.InformerSynced
	stores []interface{ ListKeys() []string }
}

// newFleet returns the caches of some types in some clusters. It sends no requests.
func newFleet(name string, clusters []*rest.Config, types []Type) (*fleet, error) {
	f := &fleet{}
	switch name {
	case ClientGo:
		return f, f.addToEachCluster(clusters, types, f.addClientGo)
	case ControllerRuntime:
		return f, f.addToEachCluster(clusters, types, f.addControllerRuntime)
	case Packed:
		return f, f.addGroup(clusters, types, dynamicinformer.ResourceOptions{})
	case CompressedTrimmed:
		return f, f.addGroup(clusters, types, dynamicinformer.ResourceOptions{Prune: pruned,
			Storage: dynamicinformer.Storage{
				Mode: dynamicinformer.StorageCompressed, Compression: s2.New(s2.Options{})}})
	}
	return nil, fmt.Errorf("%s is not measured with many types", name)
}

func (f *fleet) addToEachCluster(clusters []*rest.Config, types []Type,
	add func(*rest.Config, []Type) error) error {
	for _, config := range clusters {
		if err := add(config, types); err != nil {
			return err
		}
	}
	return nil
}

// Sync starts the caches and returns when they are synced. It calls readable when all caches serve objects,
// including persisted ones.
func (f *fleet) Sync(ctx context.Context, readable func()) error {
	for _, start := range f.starts {
		if err := start(ctx); err != nil {
			return err
		}
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

func (f *fleet) addClientGo(config *rest.Config, types []Type) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := clientgo.NewDynamicSharedInformerFactory(client, 0)
	f.starts = append(f.starts, func(ctx context.Context) error {
		factory.Start(ctx.Done())
		return nil
	})
	for _, t := range types {
		f.add(factory.ForResource(t.GVR).Informer())
	}
	return nil
}

// addGroup adds a group of factories, one for each cluster.
func (f *fleet) addGroup(clusters []*rest.Config, types []Type,
	options dynamicinformer.ResourceOptions) error {
	group, err := dynamicinformer.NewGroup(dynamicinformer.GroupOptions{})
	if err != nil {
		return err
	}
	for _, config := range clusters {
		factory, err := group.Add(config.Host, dynamicinformer.Options{Config: config, Defaults: options})
		if err != nil {
			return err
		}
		f.starts = append(f.starts, factory.Start)
		for _, t := range types {
			informer, err := factory.ForResource(t.GVR)
			if err != nil {
				return err
			}
			f.add(informer)
		}
	}
	return nil
}

func (f *fleet) addControllerRuntime(config *rest.Config, types []Type) error {
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
		return err
	}
	f.starts = append(f.starts, func(ctx context.Context) error {
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
	})
	return nil
}
