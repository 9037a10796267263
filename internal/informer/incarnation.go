package informer

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/internal/packed"
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

var (
	_ cache.ReflectorStore         = (*partition)(nil)
	_ cache.TransformingStore      = (*partition)(nil)
	_ cache.ReflectorBookmarkStore = (*partition)(nil)
)

// Transformer implements cache.TransformingStore. It transforms and packs the objects of a watch-list when
// they arrive, and returns the stored item if the object has not changed, to save memory. Replace transforms
// the items again. If the transform fails, it returns the object unchanged, and Replace reports the error.
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
		if key, err := keyOf(item); err == nil {
			stored, found := i.store.Snapshot().Get(key)
			if found && i.store.StoresObjects() && i.store.Format().Same(stored, item) {
				item = stored
			}
		}
		return item, nil
	}
}

// Add implements cache.ReflectorStore. It stores an object if the partition selects it.
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

func (p *partition) Update(obj any) error { return p.Add(obj) }

// commit stores a prepared object and notifies the handlers. It returns false if the object has to be
// prepared again because indexes were added.
func (p *partition) commit(next store.PreparedItem) (bool, error) {
	i := p.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != p.incarnation {
		return false, ErrIncarnationOver
	}
	if !p.selects(next.Item) {
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
		i.notifyLocked(p, newAddition(next.Item, false))
	case sameUID(old, next.Item):
		i.notifyLocked(p, newUpdate(old, next.Item, unchanged(old, next.Item)))
	default:
		i.notifyLocked(p, deletedUnobserved(next.Key, old), newAddition(next.Item, false))
		if !p.lastList.repeatedKeys[next.Key] {
			p.requestListLocked()
		}
	}
	return true, nil
}

// recordUntransformed records that the transform of an object failed.
func (p *partition) recordUntransformed(obj any) {
	key, err := keyOf(obj)
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

// Delete implements cache.ReflectorStore. It removes an object if it belongs to the partition. Handlers are
// not notified if the object is not stored. Another object with the same key stays, and a list follows.
func (p *partition) Delete(obj any) error {
	i := p.informer
	item, failure := p.item(obj)
	if failure != nil {
		item = obj // which has the key and the resource version
	}
	key, err := keyOf(item)
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
	i := p.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != p.incarnation {
		return ErrIncarnationOver
	}
	version := resourceVersion(final)
	if stored, found := i.store.Snapshot().Get(key); found && !sameUID(stored, final) {
		i.store.SetResourceVersion(version)
		p.advanceLocked(version)
		i.mu.log.advanceTo(version)
		p.requestListLocked()
		return nil
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
		i.notifyLocked(p, newDeletion(old, old))
	case known && !leftSelection:
		i.notifyLocked(p, newDeletion(final, old))
	default:
		i.notifyLocked(p, deletedUnobserved(key, old))
	}
	return nil
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

// sameUID reports whether two items with one key are the same object. A missing UID equals all others.
func sameUID(a, b Item) bool {
	before, after := uidOf(a), uidOf(b)
	return before == after || before == "" || after == ""
}

// uidOf returns "" if the item has no metadata.
func uidOf(item Item) types.UID {
	if o, ok := item.(*packed.Object); ok {
		return o.UID()
	}
	if m, err := meta.Accessor(item); err == nil {
		return m.GetUID()
	}
	return ""
}

// unchanged reports whether two items are the same version of an object, as in a relist or resync. The
// content of objects without a resource version, which some aggregated API servers send, is compared.
func unchanged(a, b Item) bool {
	if !sameVersion(a, b) || versionOf(a) != "" {
		return sameVersion(a, b)
	}
	x, isPacked := a.(*packed.Object)
	y, bothPacked := b.(*packed.Object)
	if isPacked && bothPacked {
		return !isIdentity(x) && !isIdentity(y) && x.SameContent(y)
	}
	return reflect.DeepEqual(a, b)
}

// sameVersion reports whether two items have the same resource version.
func sameVersion(a, b Item) bool { return versionOf(a) == versionOf(b) }

// versionOf returns the resource version of an item. Unlike resourceVersion's, it may reference the item.
func versionOf(item Item) string {
	if o, ok := item.(*packed.Object); ok {
		return o.Version()
	}
	return resourceVersion(item)
}

// resourceVersion returns "" if the object has no metadata. The result does not reference the object.
func resourceVersion(obj any) string {
	if m, err := meta.Accessor(obj); err == nil {
		return m.GetResourceVersion()
	}
	return ""
}
