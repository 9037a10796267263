package informer

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/internal/newer"
	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/store"
)

// incarnation is one run of an informer, and the store of its reflector. Each event is a write to the
// informer's store and a notification in each queue. An incarnation that has ended cannot write.
type incarnation struct {
	informer  *Informer
	cancel    context.CancelFunc
	transform cache.TransformFunc
	// onError is called when a list or watch ends with an error.
	onError cache.WatchErrorHandlerWithContext
	logger  klog.Logger

	// pendingLists is the number of partitions that have not listed in this incarnation. onListed, if not
	// nil, is called when there are none left. Informer.mu guards both, and partitions, the number of running
	// partitions.
	pendingLists      int
	onListed          func()
	runningPartitions int
	// reached is the progress.observed of the only stream. If partitioned is true, the Informer's partitions
	// have the progress. Without partitions, nothing is selected. Guarded by Informer.mu.
	reached     string
	partitioned bool
}

var (
	_ cache.ReflectorStore    = (*incarnation)(nil)
	_ cache.TransformingStore = (*incarnation)(nil)
	_ newer.BookmarkStore     = (*incarnation)(nil)
)

// Transformer implements cache.TransformingStore. It transforms and packs the objects of a watch-list when
// they arrive, and returns the stored item if the object has not changed, to save memory. Replace transforms
// the items again. If the transform fails, it returns the object unchanged, and Replace reports the error.
func (g *incarnation) Transformer() cache.TransformFunc {
	if _, packs := g.informer.store.Form().(*store.Packed); g.transform == nil && !packs {
		return nil
	}
	return func(obj any) (any, error) {
		item, err := g.listedItem(obj)
		if err != nil {
			return obj, nil
		}
		i := g.informer
		if key, err := i.keyOf(item); err == nil {
			if stored, found := i.store.Snapshot().Get(key); found && i.store.Form().Same(stored, item) {
				item = stored
			}
		}
		return item, nil
	}
}

func (g *incarnation) Add(obj any) error { return g.put(obj, nil) }

func (g *incarnation) Update(obj any) error { return g.put(obj, nil) }

// put stores an object if the partition admits it. A nil partition admits all.
func (g *incarnation) put(obj any, owner *partition) error {
	item, err := g.item(obj)
	if err != nil {
		return err
	}
	keyed, err := g.informer.withKey(item)
	if err != nil {
		return err
	}
	g.informer.mutations.AddObject(item)
	for {
		if done, err := g.commit(g.informer.store.Prepare(keyed), owner); done || err != nil {
			return err
		}
	}
}

// commit stores a prepared object and notifies the handlers. It returns false if the object has to be
// prepared again because indexes were added.
func (g *incarnation) commit(p store.Prepared, owner *partition) (bool, error) {
	i := g.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != g {
		return false, ErrIncarnationOver
	}
	if owner != nil && !owner.admitsLocked(p) {
		return true, nil
	}
	old, ok := i.store.Put(p)
	if !ok {
		return false, nil
	}
	g.advanceLocked(owner, p.ResourceVersion)
	i.mu.log.recordPut(p, old)
	switch {
	case old == nil:
		i.notifyLocked(newAddition(p.Item, false))
	case sameUID(old, p.Item):
		i.notifyLocked(newUpdate(old, p.Item, sameVersion(old, p.Item)))
	default:
		i.notifyLocked(deletedUnobserved(p.Key, old), newAddition(p.Item, false))
	}
	return true, nil
}

// Delete implements cache.ReflectorStore. Handlers are not notified if the object is not stored.
func (g *incarnation) Delete(obj any) error { return g.delete(obj, nil) }

// delete removes an object if it belongs to the partition. All objects belong to a nil partition.
func (g *incarnation) delete(obj any, owner *partition) error {
	i := g.informer
	item, failure := g.item(obj)
	if failure != nil {
		item = obj // which has the key and the resource version
	}
	key, err := i.keyOf(item)
	if err != nil {
		return err
	}
	object, ok := obj.(runtime.Object)
	leftSelection := ok && !i.options.Selects(object)
	if err := g.remove(key, item, failure == nil, leftSelection, owner); err != nil {
		return err
	}
	if failure != nil {
		utilruntime.HandleErrorWithLogger(g.logger, failure,
			"Delivering a deletion with the last known state", "key", key)
	}
	return nil
}

// remove removes an object. known states that final is its final state, and left that it has left the
// selection.
func (g *incarnation) remove(key string, final Item, known, leftSelection bool, owner *partition) error {
	i := g.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != g {
		return ErrIncarnationOver
	}
	version := resourceVersion(final)
	if owner != nil && !owner.deletesLocked(key, version) {
		return nil
	}
	old := i.store.Remove(key, version)
	g.advanceLocked(owner, version)
	if old == nil {
		i.mu.log.advanceTo(version)
	} else {
		i.mu.log.record(key, version, old, nil)
	}
	switch {
	case old == nil:
	case leftSelection:
		i.notifyLocked(newDeletion(old, old))
	case known:
		i.notifyLocked(newDeletion(final, old))
	default:
		i.notifyLocked(deletedUnobserved(key, old))
	}
	return nil
}

// Bookmark implements newer.BookmarkStore.
func (g *incarnation) Bookmark(resourceVersion string) error { return g.bookmark(resourceVersion, nil) }

func (g *incarnation) bookmark(resourceVersion string, owner *partition) error {
	i := g.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != g {
		return ErrIncarnationOver
	}
	i.store.SetResourceVersion(resourceVersion)
	g.advanceLocked(owner, resourceVersion)
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

// sameVersion reports whether two items have the same resource version, as in a relist or resync.
func sameVersion(a, b Item) bool {
	before, known := versionOf(a)
	after, also := versionOf(b)
	return known && also && before == after
}

// versionOf returns false if the item has no metadata.
func versionOf(item Item) (string, bool) {
	if o, ok := item.(*packed.Object); ok {
		return o.Version(), true
	}
	m, err := meta.Accessor(item)
	if err != nil {
		return "", false
	}
	return m.GetResourceVersion(), true
}

// resourceVersion returns "" if the object has no metadata. The result does not reference the object.
func resourceVersion(obj any) string {
	if m, err := meta.Accessor(obj); err == nil {
		return m.GetResourceVersion()
	}
	return ""
}
