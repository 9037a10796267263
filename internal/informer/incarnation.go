package informer

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/internal/informer/delivery"
	"github.com/crdcache/crdcache/internal/store"
)

// incarnation is one run of an informer. An incarnation that has ended cannot write.
type incarnation struct {
	informer  *Informer
	cancel    context.CancelFunc
	transform cache.TransformFunc
	// onError is called when a list or watch ends with an error.
	onError cache.WatchErrorHandlerWithContext
	logger  klog.Logger

	// pendingLists is the number of partitions that have not listed in this incarnation. onAllListed, if not
	// nil, is called when it becomes zero. Informer.mu guards both.
	pendingLists int
	onAllListed  func()
}

// Transformer returns a function that transforms and packs the objects of a watch-list when they arrive. The
// func returns the stored item if the object has not changed, to save memory. Replace transforms the items
// again. If the transform fails, the func returns the object unchanged, and Replace reports the error.
func (g *incarnation) Transformer() cache.TransformFunc {
	if _, packs := g.informer.store.Format().(*store.Packed); g.transform == nil && !packs {
		return nil
	}
	return func(obj any) (any, error) {
		item, err := g.listedItem(obj)
		if err != nil {
			return obj, nil
		}
		i := g.informer
		if key, err := store.KeyOf(item); err == nil && i.store.StoresObjects() {
			stored, found := i.store.Snapshot().Get(key)
			if found && i.store.Format().Same(stored, item) {
				item = stored
			}
		}
		return item, nil
	}
}

// Add stores an object if the partition selects it.
func (p *partition) Add(obj any) error {
	item, err := p.item(obj)
	if err != nil {
		p.recordUntransformed(obj)
		return err
	}
	keyed, err := withKey(item)
	if err != nil {
		return err
	}
	p.informer.mutations.AddObject(item)
	for {
		if done, err := p.commit(p.informer.store.Prepare(keyed)); done || err != nil {
			return err
		}
	}
}

// commit stores a prepared object and notifies the handlers. It returns false if the object has to be
// prepared again because indexes were added.
func (p *partition) commit(next store.PreparedItem) (bool, error) {
	i := p.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != p.incarnation {
		return false, ErrIncarnationOver
	}
	if !p.selects(next.Item) { // the selection was narrowed since the event was received
		p.deleteLocked(next.Key, next.Item, true, true)
		return true, nil
	}
	old, ok := i.store.Put(next)
	if !ok {
		return false, nil
	}
	p.advanceLocked(next.ResourceVersion)
	i.mu.log.recordPut(next, old)
	delete(p.untransformed, next.Key)
	switch {
	case old == nil:
		i.notifyLocked(p, delivery.Added(next.Item, false))
	case store.SameUID(old, next.Item):
		i.notifyLocked(p, delivery.Updated(old, next.Item, store.Unchanged(old, next.Item)))
	default:
		i.notifyLocked(p, delivery.DeletedUnobserved(next.Key, old), delivery.Added(next.Item, false))
		if !p.lastList.repeatedKeys[next.Key] {
			p.requestListLocked()
		}
	}
	return true, nil
}

// recordUntransformed records that the transform of an object failed.
func (p *partition) recordUntransformed(obj any) {
	key, err := store.KeyOf(obj)
	if err != nil {
		return
	}
	p.informer.mu.Lock()
	defer p.informer.mu.Unlock()
	if p.untransformed == nil {
		p.untransformed = map[string]bool{}
	}
	p.untransformed[key] = true
}

// requestListLocked requests a list after an event of an object whose key is that of another one: an event
// was lost, or the server has several objects with one key.
func (p *partition) requestListLocked() {
	for _, w := range p.informer.mu.streams {
		if w.partition == p && len(w.lists.next) == 0 {
			w.requestListLocked()
			go w.lw.Interrupt() // does not wait; outside of the lock
		}
	}
}

// Delete removes an object if it belongs to the partition. Handlers are
// not notified if the object is not stored. Another object with the same key stays, and a list follows.
func (p *partition) Delete(obj any) error {
	i := p.informer
	item, failure := p.item(obj)
	if failure != nil {
		item = obj // which has the key and the resource version
	}
	key, err := store.KeyOf(item)
	if err != nil {
		return err
	}
	object, ok := obj.(runtime.Object)
	leftSelection := ok && !(i.options.Selects(object) && p.selects(object))
	if err := p.remove(key, item, failure == nil, leftSelection); err != nil {
		return err
	}
	if failure != nil {
		utilruntime.HandleErrorWithLogger(p.logger, failure,
			"Delivering a deletion with the last known state", "key", key)
	}
	return nil
}

// remove removes an object. final is its last known state, and known states that this is its final state.
func (p *partition) remove(key string, final Item, known, leftSelection bool) error {
	p.informer.mu.Lock()
	defer p.informer.mu.Unlock()
	if p.informer.mu.current != p.incarnation {
		return ErrIncarnationOver
	}
	p.deleteLocked(key, final, known, leftSelection)
	return nil
}

func (p *partition) deleteLocked(key string, final Item, known, leftSelection bool) {
	i, version := p.informer, store.OwnedVersionOf(final)
	if stored, found := i.store.Snapshot().Get(key); found && !store.SameUID(stored, final) {
		i.store.SetResourceVersion(version)
		p.advanceLocked(version)
		i.mu.log.advanceTo(version)
		p.requestListLocked()
		return
	}
	if p.lastList.repeatedKeys[key] {
		p.requestListLocked() // the other object remains
	}
	old := i.store.Remove(key, version)
	p.advanceLocked(version)
	delete(p.untransformed, key)
	if old == nil {
		i.mu.log.advanceTo(version)
	} else {
		i.mu.log.record(key, version, old, nil)
	}
	switch {
	case old == nil:
	case leftSelection && i.store.StoresObjects():
		i.notifyLocked(p, delivery.Deleted(old, old))
	case known && !leftSelection:
		i.notifyLocked(p, delivery.Deleted(final, old))
	default:
		i.notifyLocked(p, delivery.DeletedUnobserved(key, old))
	}
}

func (p *partition) Bookmark(resourceVersion string) error {
	i := p.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != p.incarnation {
		return ErrIncarnationOver
	}
	i.store.SetResourceVersion(resourceVersion)
	p.advanceLocked(resourceVersion)
	i.mu.log.advanceTo(resourceVersion)
	return nil
}
