package subject

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/storage/disk"
)

// PersistedCaches has crdcache's caches of many types with default options and persistence.
type PersistedCaches struct {
	factory   *dynamicinformer.Factory
	informers []*dynamicinformer.Informer
	store     *disk.Store
}

// NewPersistedCaches returns caches that persist in a folder. An empty folder disables persistence. It sends
// no requests.
func NewPersistedCaches(config *rest.Config, types []Type, folder string) (*PersistedCaches, error) {
	k := &PersistedCaches{}
	options := dynamicinformer.Options{Config: config}
	if folder != "" {
		k.store = disk.New(folder, disk.Options{})
		options.Persistence = k.store
	}
	var err error
	if k.factory, err = dynamicinformer.New(options); err != nil {
		return nil, errors.Join(err, k.closeStore())
	}
	for _, t := range types {
		informer, err := k.factory.ForResource(t.GVR)
		if err != nil {
			return nil, errors.Join(err, k.closeStore())
		}
		k.informers = append(k.informers, informer)
	}
	return k, nil
}

// Sync is Fleet.Sync without polling.
func (k *PersistedCaches) Sync(ctx context.Context, readable func()) error {
	if err := k.factory.Start(ctx); err != nil {
		return err
	}
	for _, i := range k.informers {
		current, changed := i.StatusChange()
		for current.State != status.Resuming && current.State != status.Synced {
			select {
			case <-changed:
				current, changed = i.StatusChange()
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	readable()
	return k.factory.WaitForSync(ctx)
}

// Len returns the number of objects of all types.
func (k *PersistedCaches) Len() int {
	objects := 0
	for _, i := range k.informers {
		objects += i.Snapshot().Len()
	}
	return objects
}

// Resumed returns the number of caches that resumed from persisted objects.
func (k *PersistedCaches) Resumed() int {
	count := 0
	for _, i := range k.informers {
		if i.Persistence().Resumed {
			count++
		}
	}
	return count
}

// Close stops the caches and returns when everything is saved.
func (k *PersistedCaches) Close(ctx context.Context) error {
	err := k.factory.Shutdown(ctx)
	if k.store != nil {
		for _, i := range k.informers {
			err = errors.Join(err, i.Persistence().Err)
		}
	}
	return errors.Join(err, k.closeStore())
}

func (k *PersistedCaches) closeStore() error {
	if k.store == nil {
		return nil
	}
	return k.store.Close()
}
