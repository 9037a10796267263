package informer

import (
	"slices"

	"github.com/crdcache/crdcache/internal/store"
)

// isWhole reports whether the part, of a selection, is the only one: then its lists are swapped in as a
// whole.
func (p *part) isWhole() bool {
	i := p.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	return p.isWholeLocked()
}

func (p *part) isWholeLocked() bool { return p.selection != nil && p.partsOfSet == 1 }

// selected are the objects of a list that are of the part.
func (p *part) selected(keyed []store.Keyed) []store.Keyed {
	return slices.DeleteFunc(slices.Clone(keyed),
		func(k store.Keyed) bool { return !p.selection.Has(k.Item) })
}

// commitWhole stores the list of the only part, as commitPart does. It returns false, too, when the part is
// not the only one any more, or has come to select fewer objects than the list has.
func (p *part) commitWhole(list []store.Keyed, batch *store.Batch, resourceVersion string) (bool, error) {
	i := p.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.mu.current != p.generation:
		return false, ErrGenerationOver
	case !p.isWholeLocked(), slices.ContainsFunc(list,
		func(k store.Keyed) bool { return !p.selection.Has(k.Item) }):
		return false, nil
	}
	changes, ok := i.store.Replace(batch, resourceVersion)
	if !ok {
		return false, nil
	}
	i.mu.wholeOf = nil
	i.mu.log.reset(resourceVersion)
	p.beginLocked(resourceVersion)
	p.recordPartLocked(changes, true)
	return true, nil
}

// admitsLocked reports whether an object that comes is to be stored for the part. Where objects are selected
// by what is not in their keys, one key may be that of two objects, one after the other, and of two parts,
// whose streams may be at different times: what is newer stays.
func (p *part) admitsLocked(next store.Prepared) bool {
	if p.selection == nil {
		return true
	}
	if !p.selection.Has(next.Item) {
		return false
	}
	held, found := p.informer.store.Snapshot().Get(next.Key)
	return !found || p.holds(held) || !older(resourceVersion(next.Item), resourceVersion(held))
}

// holds reports whether an object that the cache has is of the part, and has come to it by its own stream, so
// that what the stream brings next is newer.
func (p *part) holds(held Item) bool { return p.selection.Has(held) && len(p.ahead) == 0 }

// ownsLocked reports whether the object that is held under a key, which has the part's prefix, is of the
// part.
func (p *part) ownsLocked(key string) bool {
	if p.selection == nil {
		return true
	}
	held, found := p.informer.store.Snapshot().Get(key)
	return !found || p.selection.Has(held)
}

// Add implements cache.ReflectorStore.
func (p *part) Add(obj any) error {
	return p.apply(obj, func() error { return p.put(obj, p) })
}

// Update implements cache.ReflectorStore.
func (p *part) Update(obj any) error { return p.Add(obj) }

// Delete implements cache.ReflectorStore. An object that is held for another part is another one.
func (p *part) Delete(obj any) error {
	return p.apply(obj, func() error { return p.delete(obj, p) })
}

// Bookmark implements cache.ReflectorBookmarkStore.
func (p *part) Bookmark(resourceVersion string) error {
	p.reach(resourceVersion)
	return p.bookmark(resourceVersion, p)
}

// apply applies an event of an object, unless the part knows of it. Should that panic, everything is listed
// again: the part has not come to it then.
func (p *part) apply(obj any, change func() error) error {
	if p.knows(obj) {
		return nil
	}
	err := change()
	p.reach(resourceVersion(obj))
	return err
}

// losesLocked reports whether the object that is held under a key goes with one of the part that was deleted.
func (p *part) losesLocked(key, version string) bool {
	held, found := p.informer.store.Snapshot().Get(key)
	return p.selection == nil || !found || p.holds(held) || p.selection.Has(held) &&
		!older(version, resourceVersion(held))
}

// Depart has objects leave the cache that exist, as far as is known: those that do not stay. Handlers are
// told if they are Departed, and it is no deletion. Before, narrow is called, which may have selections of
// parts select fewer objects: nothing comes in between. Both are called under the lock, and must not call
// back.
func (i *Informer) Depart(narrow func(), stays func(Item) bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	narrow()
	if i.mu.state == StateStopped {
		return
	}
	var leaving []notification
	for key, item := range i.store.Snapshot().All {
		if !stays(item) {
			i.store.Remove(key, "")
			leaving = append(leaving, departed(item))
		}
	}
	if len(leaving) > 0 {
		i.mu.wholeOf = nil
		i.mu.log.reset(i.store.Snapshot().ResourceVersion())
		i.tellLocked(leaving...)
	}
}
