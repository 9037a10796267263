package experiment

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/storage/disk"
)

// persistedCaches has crdcache's caches of many types with default options and persistence.
type persistedCaches struct {
	factory   *dynamicinformer.Factory
	informers []*dynamicinformer.Informer
	store     *disk.Store
}

// newPersistedCaches returns caches that persist in a folder. An empty folder disables persistence. It sends
// no requests.
func newPersistedCaches(config *rest.Config, types []Type, folder string) (*persistedCaches, error) {
	k := &persistedCaches{}
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
func (k *persistedCaches) Sync(ctx context.Context, readable func()) error {
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
func (k *persistedCaches) Len() int {
	objects := 0
	for _, i := range k.informers {
		objects += i.Snapshot().Len()
	}
	return objects
}

// Resumed returns the number of caches that resumed from persisted objects.
func (k *persistedCaches) Resumed() int {
	count := 0
	for _, i := range k.informers {
		if i.Persistence().Resumed {
			count++
		}
	}
	return count
}

// Close stops the caches and returns when everything is saved.
func (k *persistedCaches) Close(ctx context.Context) error {
	err := k.factory.Shutdown(ctx)
	if k.store != nil {
		for _, i := range k.informers {
			err = errors.Join(err, i.Persistence().Err)
		}
	}
	return errors.Join(err, k.closeStore())
}

func (k *persistedCaches) closeStore() error {
	if k.store == nil {
		return nil
	}
	return k.store.Close()
}
