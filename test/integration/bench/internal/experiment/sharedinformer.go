package experiment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
)

// sharedInformer is a cache.SharedIndexInformer as a Cache.
type sharedInformer struct {
	informer cache.SharedIndexInformer
	lister   cache.GenericLister
	handler  cache.ResourceEventHandler
	// run runs the informer until the context ends.
	run func(context.Context)
	// addIndex adds the index with the library's API.
	addIndex func() error
	// jsonBytes returns the length of the objects' JSON. It is optional.
	jsonBytes func() (int64, error)
	// waitForIdle waits for the end of the background work after a sync. It is optional.
	waitForIdle func(context.Context) error
}

func (s *sharedInformer) Sync(ctx context.Context) error {
	synced := []cache.InformerSynced{s.informer.HasSynced}
	if s.handler != nil {
		registration, err := s.informer.AddEventHandler(s.handler)
		if err != nil {
			return err
		}
		synced = append(synced, registration.HasSynced)
	}
	go s.run(ctx) // ends with ctx
	return awaitSynced(ctx, synced...)
}

func (s *sharedInformer) Len() int { return len(s.informer.GetStore().ListKeys()) }

func (s *sharedInformer) Keys() []string { return s.informer.GetStore().ListKeys() }

func (s *sharedInformer) Get(key string) (any, error) {
	object, ok, err := s.informer.GetStore().GetByKey(key)
	if err == nil && !ok {
		err = fmt.Errorf("%s is not in the cache", key)
	}
	return object, err
}

func (s *sharedInformer) ListAll() (int, error) {
	objects, err := s.lister.List(labels.Everything())
	return len(objects), err
}

func (s *sharedInformer) ListNamespace(namespace string) (int, error) {
	objects, err := s.informer.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	return len(objects), err
}

func (s *sharedInformer) AddIndex() error { return s.addIndex() }

func (s *sharedInformer) ByIndex(value string) (any, error) {
	objects, err := s.informer.GetIndexer().ByIndex(indexName, value)
	if err != nil {
		return nil, err
	}
	return onlyElement(objects, value)
}

// onlyElement returns the only object of a list.
func onlyElement[T any](objects []T, value string) (any, error) {
	if len(objects) != 1 {
		return nil, fmt.Errorf("the index has %d objects for %q, want 1", len(objects), value)
	}
	return objects[0], nil
}

// errNotSynced is returned if the context or the stream ended before the sync.
var errNotSynced = errors.New("not synced")

// syncPoll is the interval of checks for the sync. It is short compared with a sync, and long enough to be
// cheap. cache.WaitForCacheSync uses 100 ms.
const syncPoll = 2 * time.Millisecond

// awaitSynced returns when all are synced.
func awaitSynced(ctx context.Context, synced ...cache.InformerSynced) error {
	ticker := time.NewTicker(syncPoll)
	defer ticker.Stop()
	for _, done := range synced {
		for !done() {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return fmt.Errorf("%w: %w", errNotSynced, context.Cause(ctx))
			}
		}
	}
	return nil
}
