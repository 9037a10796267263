package experiment

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	clientgo "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// Type is a resource and its kind.
type Type struct {
	GVR  schema.GroupVersionResource
	Kind string
}

func (t Type) kind() schema.GroupVersionKind { return t.GVR.GroupVersion().WithKind(t.Kind) }

// OwnedKinds are the kinds of objects that the certificates of an operator own. These objects have the fields
// of certificates.
var OwnedKinds = []string{"FirstOwned", "SecondOwned"}

// SharedTypes is the number of types that each of many controllers watches beside its own.
const SharedTypes = 2

func ResourceOf(kind string) string { return strings.ToLower(kind) + "s" }

// fleet has a cache for each of many types. They run until the context that was given to Sync ends.
type fleet struct {
	starts []func(ctx context.Context) error
	// readable and synced have a function for each cache that reports whether it serves objects, and whether
	// it is filled; stores has its content. All are complete once all starts have returned.
	readable, synced []cache.InformerSynced
	stores           []interface{ ListKeys() []string }
	// factories and informers are crdcache's.
	factories []*dynamicinformer.Factory
	informers []*dynamicinformer.Informer
}

// newFleet returns the caches of some types in some clusters. It sends no requests. Only crdcache's caches
// can persist objects.
func newFleet(name string, clusters []*rest.Config, types []Type,
	persisted persistence.Backend) (*fleet, error) {
	f := &fleet{}
	switch name {
	case ClientGo:
		return f, f.addToEachCluster(clusters, types, f.addClientGo)
	case Packed:
		return f, f.addGroup(clusters, types, dynamicinformer.Options{Persistence: persisted})
	case CompressedTrimmed:
		return f, f.addGroup(clusters, types, dynamicinformer.Options{
			Defaults: dynamicinformer.ResourceOptions{Prune: pruned, Storage: dynamicinformer.Storage{
				Mode: dynamicinformer.StorageCompressed, Compression: s2.New()}}})
	}
	if newAdder := runtimeAdders[name]; newAdder != nil {
		return f, f.addToEachCluster(clusters, types, newAdder(f))
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
	err := awaitSynced(ctx, f.readable...)
	readable()
	return errors.Join(err, awaitSynced(ctx, f.synced...))
}

// Resumed returns the number of caches that resumed from persisted objects.
func (f *fleet) Resumed() int {
	count := 0
	for _, i := range f.informers {
		if i.Persistence().Resumed {
			count++
		}
	}
	return count
}

// Close stops crdcache's caches and returns when everything is saved.
func (f *fleet) Close(ctx context.Context) (err error) {
	for _, factory := range f.factories {
		err = errors.Join(err, factory.Shutdown(ctx))
	}
	for _, i := range f.informers {
		err = errors.Join(err, i.Persistence().Err)
	}
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

func (f *fleet) add(informer cache.SharedIndexInformer, readable cache.InformerSynced) {
	f.readable = append(f.readable, readable)
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
		informer := factory.ForResource(t.GVR).Informer()
		f.add(informer, informer.HasSynced)
	}
	return nil
}

// addGroup adds a group of factories, one for each cluster.
func (f *fleet) addGroup(clusters []*rest.Config, types []Type, options dynamicinformer.Options) error {
	group, err := dynamicinformer.NewGroup(dynamicinformer.GroupOptions{})
	if err != nil {
		return err
	}
	for _, config := range clusters {
		options.Config = config
		factory, err := group.Add(config.Host, options)
		if err != nil {
			return err
		}
		f.starts = append(f.starts, factory.Start)
		f.factories = append(f.factories, factory)
		for _, t := range types {
			informer, err := factory.ForResource(t.GVR)
			if err != nil {
				return err
			}
			f.add(informer, func() bool {
				state := informer.Status().State
				return state == status.Resuming || state == status.Synced
			})
			f.informers = append(f.informers, informer)
		}
	}
	return nil
}
