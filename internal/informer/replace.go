package informer

import (
	"fmt"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/crdcache/crdcache/internal/store"
)

// Replace implements cache.ReflectorStore: the result of a list or watch-list becomes the content, and the
// handlers learn the differences, deletions first. The first one of a generation's life, as long as the store
// has not synced, is the initial list.
func (g *generation) Replace(list []any, resourceVersion string) error {
	keyed, err := g.keyedList(list)
	if err != nil {
		return err
	}
	for _, k := range keyed {
		g.informer.mutations.AddObject(k.Item)
	}
	for {
		batch := g.informer.store.PrepareAll(keyed)
		if done, err := g.commitAll(batch, resourceVersion); done || err != nil {
			return err
		}
	}
}

// keyedList transforms the list and computes the keys. An object that the transform fails on is reported; what
// the store holds for it stays, so that nobody is told of a deletion that did not happen.
func (g *generation) keyedList(list []any) ([]store.Keyed, error) {
	i := g.informer
	all := make([]store.Keyed, 0, len(list))
	var firstFailure error
	failures := 0
	for _, obj := range list {
		item, failure := g.item(obj)
		if failure != nil {
			item = obj
		}
		keyed, err := i.keyed(item)
		if err != nil {
			return nil, err
		}
		if failure == nil {
			all = append(all, keyed)
			continue
		}
		if failures++; failures == 1 {
			firstFailure = fmt.Errorf("object %q: %w", keyed.Key, failure)
		}
		if kept, found := i.store.Snapshot().Get(keyed.Key); found {
			all = append(all, store.Keyed{Key: keyed.Key, ResourceVersion: resourceVersion(kept), Item: kept})
		}
	}
	if failures > 0 {
		utilruntime.HandleErrorWithLogger(g.logger, firstFailure, "Listed objects could not be transformed and were left as they were", "objects", failures)
	}
	return all, nil
}

// commitAll is commit for a whole list.
func (g *generation) commitAll(batch *store.Batch, resourceVersion string) (bool, error) {
	i := g.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != g {
		return false, ErrGenerationOver
	}
	changes, ok := i.store.Replace(batch, resourceVersion)
	if !ok {
		return false, nil
	}
	synced := i.synced.Load()
	initial := !synced.reached()
	if len(i.mu.handlers) > 0 {
		i.tellLocked(notifications(changes, initial)...)
	}
	if initial {
		synced.reach()
		for _, r := range i.mu.handlers {
			r.queue.push(marker(r.synced.Load().reach))
		}
	}
	return true, nil
}

// notifications turns the changes of a Replace into what handlers are told.
func notifications(changes []store.Change, initial bool) []notification {
	batch := make([]notification, 0, len(changes))
	for _, c := range changes {
		switch {
		case c.New == nil:
			batch = append(batch, lost(c.Key, c.Old))
		case c.Old == nil:
			batch = append(batch, added(c.New, initial))
		case sameUID(c.Old, c.New):
			batch = append(batch, updated(c.Old, c.New, sameVersion(c.Old, c.New)))
		default:
			batch = append(batch, lost(c.Key, c.Old), added(c.New, initial))
		}
	}
	return batch
}
