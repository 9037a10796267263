package informer

import (
	"fmt"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/store"
)

// Replace implements cache.ReflectorStore: the result of a list or watch-list becomes the content, and the
// handlers learn the differences, deletions first. The first one of a generation's life, as long as the store
// has not synced, is the initial list. It takes the list over.
func (g *generation) Replace(list []any, resourceVersion string) error {
	all, err := g.itemsOf(list)
	if err != nil {
		return err
	}
	for _, item := range all.items {
		g.informer.mutations.AddObject(item)
	}
	for {
		batch := g.informer.store.PrepareList(len(all.items), all.at)
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

// keyedList transforms the list and computes the keys; the versions of objects do not matter for a whole
// content. An object that the transform fails on is reported; what the store holds for it stays, so that
// nobody is told of a deletion that did not happen.
func (g *generation) keyedList(list []any) ([]store.Keyed, error) {
	all, err := g.itemsOf(list)
	if err != nil {
		return nil, err
	}
	keyed := make([]store.Keyed, len(all.items))
	for n := range keyed {
		keyed[n] = all.at(n)
	}
	return keyed, nil
}

// items are what is to be stored, with their keys. Those of packed objects are not kept beside them: with a
// million objects that would be a good part of what a list takes beyond what stays.
type items struct {
	items []Item
	keys  []string // nil: all are those of packed objects
}

// at is item n with its key.
func (l *items) at(n int) store.Keyed {
	if l.keys != nil {
		return store.Keyed{Key: l.keys[n], Item: l.items[n]}
	}
	return store.Keyed{Key: l.items[n].(*packed.Object).Key(), Item: l.items[n]}
}

// add appends an item.
func (l *items) add(key string, item Item) {
	if o, ok := item.(*packed.Object); l.keys == nil && (!ok || o.Key() != key) {
		l.keys = make([]string, 0, cap(l.items))
		for _, before := range l.items {
			l.keys = append(l.keys, before.(*packed.Object).Key())
		}
	}
	l.items = append(l.items, item)
	if l.keys != nil {
		l.keys = append(l.keys, key)
	}
}

// itemsOf is keyedList in the memory of the list.
func (g *generation) itemsOf(list []any) (*items, error) {
	i := g.informer
	all := &items{items: list[:0]}
	var firstFailure error
	failures := 0
	if form, packs := i.store.Form().(*store.Packed); packs {
		form.RestartList()
	}
	for _, obj := range list {
		item, failure := g.listedItem(obj)
		if failure != nil {
			item = obj
		}
		key, err := i.keyOf(item)
		if err != nil {
			return nil, err
		}
		if failure == nil {
			all.add(key, item)
			continue
		}
		if failures++; failures == 1 {
			firstFailure = fmt.Errorf("object %q: %w", key, failure)
		}
		if kept, found := i.store.Snapshot().Get(key); found {
			all.add(key, kept)
		}
	}
	if failures > 0 {
		utilruntime.HandleErrorWithLogger(g.logger, firstFailure,
			"Listed objects could not be transformed and were left as they were", "objects", failures)
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
	differences, ok := i.store.ReplaceList(batch, resourceVersion)
	if !ok {
		return false, nil
	}
	l := listing{changes: differences, untold: i.mu.unconfirmed.any()}
	i.mu.unconfirmed = unconfirmed{}
	i.mu.wholeOf = g.past
	i.mu.log.reset(resourceVersion)
	if g.unlisted == 0 {
		i.events.relists.Add(1)
	}
	g.recordListingLocked(l, g.unlisted > 0)
	return true, nil
}

// recordListLocked is recordListingLocked for changes that are in memory.
func (g *generation) recordListLocked(changes []store.Change, first bool) {
	g.recordListingLocked(listing{changes: changeList(changes)}, first)
}

// recordListingLocked records the changes that a list has made, first being set for the first list of a part
// in this generation: the handlers are told, and the informer has synced with the last of those.
func (g *generation) recordListingLocked(l listing, first bool) {
	i := g.informer
	synced := i.synced.Load()
	initial := !synced.reached()
	l.initial, l.takeover = initial, first && !initial
	i.tellOfLocked(l)
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
