package informer

import (
	"maps"
	"slices"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/internal/store"
)

// indexer is an Informer's cache.Indexer. Reads return shared, read-only objects. If the informer stores no
// objects, reads other than of keys return ErrNotStored, and panic with it if they return no error. It is
// a field of its informer, so that GetStore does not allocate.
type indexer struct {
	foreignIndexer //lint:ignore U1000 nil; it has the methods that newer releases add
	informer       *Informer
}

func (x *indexer) objects(items []Item) []any {
	object := x.informer.store.Format().Object
	for k, item := range items {
		items[k] = object(item)
	}
	return items
}

// check returns ErrNotStored if the informer stores no objects.
func (x *indexer) check() error {
	if !x.informer.store.StoresObjects() {
		return ErrNotStored
	}
	return nil
}

func (x *indexer) mustCheck() {
	if err := x.check(); err != nil {
		panic(err)
	}
}

func (x *indexer) Add(obj any) error {
	i := x.informer
	keyed, err := withKey(i.store.Format().Item(obj))
	if err != nil {
		return err
	}
	for done := false; !done; {
		prepared := i.store.Prepare(keyed)
		i.writeDirectly(func() { _, done = i.store.Put(prepared) })
	}
	return nil
}

func (x *indexer) Update(obj any) error { return x.Add(obj) }

func (x *indexer) Delete(obj any) error {
	key, err := store.KeyOf(obj)
	if err != nil {
		return err
	}
	x.informer.writeDirectly(func() { x.informer.store.Remove(key, store.OwnedVersionOf(obj)) })
	return nil
}

func (x *indexer) Replace(list []any, version string) error {
	i := x.informer
	items := make([]store.KeyedItem, len(list))
	for k, obj := range list {
		var err error
		if items[k], err = withKey(i.store.Format().Item(obj)); err != nil {
			return err
		}
	}
	for done := false; !done; {
		batch := i.store.PrepareAll(items)
		i.writeDirectly(func() { _, done = i.store.Replace(batch, version) })
	}
	return nil
}

func (x *indexer) Resync() error { return nil }

func (x *indexer) Bookmark(version string) {
	x.informer.writeDirectly(func() { x.informer.store.SetResourceVersion(version) })
}

// LastStoreSyncResourceVersion returns the resource version of the last list, event or bookmark stored; with
// several partitions, the smallest one.
func (x *indexer) LastStoreSyncResourceVersion() string { return x.informer.LastSyncResourceVersion() }

func (x *indexer) List() []any {
	x.mustCheck()
	return x.objects(x.informer.store.Snapshot().Items())
}

func (x *indexer) ListKeys() []string { return x.informer.store.Snapshot().Keys() }

func (x *indexer) Get(obj any) (item any, exists bool, err error) {
	key, err := store.KeyOf(obj)
	if err != nil {
		return nil, false, err
	}
	return x.GetByKey(key)
}

func (x *indexer) GetByKey(key string) (item any, exists bool, err error) {
	if err := x.check(); err != nil {
		return nil, false, err
	}
	item, exists = x.informer.store.Object(key)
	return item, exists, nil
}

// Index accepts a store item as well.
func (x *indexer) Index(indexName string, obj any) ([]any, error) {
	if err := x.check(); err != nil {
		return nil, err
	}
	items, err := x.informer.store.Snapshot().ItemsByIndexOf(indexName, x.informer.store.Format().Object(obj))
	return x.objects(items), err
}

func (x *indexer) IndexKeys(indexName, indexedValue string) ([]string, error) {
	if err := x.check(); err != nil {
		return nil, err
	}
	return x.informer.store.Snapshot().KeysByIndex(indexName, indexedValue)
}

func (x *indexer) ListIndexFuncValues(indexName string) []string {
	x.mustCheck()
	return x.informer.store.Snapshot().IndexValues(indexName)
}

func (x *indexer) ByIndex(indexName, indexedValue string) ([]any, error) {
	if err := x.check(); err != nil {
		return nil, err
	}
	items, err := x.informer.store.Snapshot().ItemsByIndex(indexName, indexedValue)
	return x.objects(items), err
}

// GetIndexers returns the index functions of the indexes that are complete.
func (x *indexer) GetIndexers() cache.Indexers { return x.informer.store.Snapshot().Indexers() }

// AddIndexers is like Informer.AddIndexers, but also works after the stop.
func (x *indexer) AddIndexers(newIndexers cache.Indexers) error {
	return x.informer.store.AddIndexers(newIndexers)
}

// reportFailures returns a function that reports failing index functions to utilruntime's error handlers.
func reportFailures(logger klog.Logger, objects string) func(store.Failures) {
	return func(failures store.Failures) {
		for _, name := range slices.Sorted(maps.Keys(failures)) {
			failure := failures[name]
			utilruntime.HandleErrorWithLogger(logger, failure.Err,
				"Objects could not be indexed and are missing from the index",
				"index", name, "of", objects, "objects", failure.Objects, "firstKey", failure.Key)
		}
	}
}
