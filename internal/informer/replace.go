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
		done, err := g.commitAll(batch, resourceVersion)
		if err != nil {
			return err
		}
		if done {
			g.announce()
			return nil
		}
	}
}

// keyedList transforms the list and computes the keys; the versions of objects do not matter for a whole content. An object that the transform fails on is reported; what
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
		key, err := i.keyOf(item)
		if err != nil {
			return nil, err
		}
		if failure == nil {
			all = append(all, store.Keyed{Key: key, Item: item})
			continue
		}
		if failures++; failures == 1 {
			firstFailure = fmt.Errorf("object %q: %w", key, failure)
		}
		if kept, found := i.store.Snapshot().Get(key); found {
			all = append(all, store.Keyed{Key: key, Item: kept})
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
	if i.mu.unconfirmed {
		i.mu.unconfirmed = false
		changes = newToHandlers(changes)
	}
	i.mu.wholeOf = g.past
	i.mu.log.reset(resourceVersion)
	if g.unlisted == 0 {
		i.events.relists.Add(1)
	}
	g.recordListLocked(changes, g.unlisted > 0)
	return true, nil
}

// recordListLocked records the changes that a list has made, first being set for the first list of a part in this
// generation: the handlers are told, and the informer has synced with the last of those.
func (g *generation) recordListLocked(changes []store.Change, first bool) {
	i := g.informer
	synced := i.synced.Load()
	initial := !synced.reached()
	i.tellOfLocked(changes, initial, first && !initial)
	if first {
		g.unlisted--
	}
	if initial && g.unlisted == 0 {
		synced.reach()
		i.mu.log.notify()
		for _, r := range i.mu.handlers {
			r.queue.Push(marker(r.synced.Load().reach))
		}
	}
}

// announce calls listed once everything has been listed.
func (g *generation) announce() {
	i := g.informer
	i.mu.Lock()
	listed := g.listed
	if g.unlisted > 0 {
		listed = nil
	} else {
		g.listed = nil
	}
	i.mu.Unlock()
	if listed != nil {
		listed()
	}
}

// notifications turns the changes of a list into what handlers are told. Where the list is the first of a
// generation that takes over from another, an object of the same resource version may be in another form, that of
// another version of its type, so that everyone hears of it.
func notifications(changes []store.Change, initial, takeover bool) []notification {
	batch := make([]notification, 0, len(changes))
	for _, c := range changes {
		batch = appendNotifications(batch, c, initial, takeover)
	}
	return batch
}

// appendNotifications is notifications for one change, which has two where one object has taken the place of another.
func appendNotifications(to []notification, c store.Change, initial, takeover bool) []notification {
	switch {
	case c.New == nil:
		return append(to, lost(c.Key, c.Old))
	case c.Old == nil:
		return append(to, added(c.New, initial))
	case sameUID(c.Old, c.New):
		return append(to, updated(c.Old, c.New, !takeover && sameVersion(c.Old, c.New)))
	default:
		return append(to, lost(c.Key, c.Old), added(c.New, initial))
	}
}
