package informer

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/store"
)

// generation is the life of one reflector, and the store that it writes to: every event is one write to the
// informer's store and one notification in each queue. A generation that is over cannot write any more.
type generation struct {
	informer  *Informer
	cancel    context.CancelFunc
	transform cache.TransformFunc
	// onError is told why a list or watch ended.
	onError cache.WatchErrorHandlerWithContext
	// check is how often the reflector asks whether a handler is due for a resync; zero: never.
	check  time.Duration
	logger klog.Logger
	// past is that of the only part; nil where there are several, or where nothing is kept.
	past Past
	// settled, unless nil, is called when nothing that an earlier process kept of the parts is unconfirmed
	// any more. It is guarded by Informer.mu.
	settled func()

	// unlisted counts the parts that have not listed in this generation; listed, unless nil, is called when
	// there are none left. Both are guarded by Informer.mu.
	unlisted int
	listed   func()
	// partsOfSet counts the parts that come and go, as they are now. It is guarded by Informer.mu.
	partsOfSet int
}

var (
	_ cache.ReflectorStore         = (*generation)(nil)
	_ cache.TransformingStore      = (*generation)(nil)
	_ cache.ReflectorBookmarkStore = (*generation)(nil)
)

// Transformer implements cache.TransformingStore: the reflector passes what it collects of a watch-list
// through it, so that objects are transformed and packed while they arrive, and those that have not changed
// since an earlier list take no second room. Replace transforms once more. An object that the transform fails
// on is passed on as it came, so that it does not vanish from the list unnoticed; Replace then decides.
func (g *generation) Transformer() cache.TransformFunc {
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
			if had, found := i.store.Snapshot().Get(key); found && i.store.Form().Same(had, item) {
				item = had
			}
		}
		return item, nil
	}
}

// Add implements cache.ReflectorStore.
func (g *generation) Add(obj any) error { return g.put(obj, nil) }

// Update implements cache.ReflectorStore.
func (g *generation) Update(obj any) error { return g.put(obj, nil) }

// put stores an object for a part, if that admits it; nil: for the only part.
func (g *generation) put(obj any, of *part) error {
	item, err := g.item(obj)
	if err != nil {
		return err
	}
	keyed, err := g.informer.keyed(item)
	if err != nil {
		return err
	}
	g.informer.mutations.AddObject(item)
	for {
		if done, err := g.commit(g.informer.store.Prepare(keyed), of); done || err != nil {
			return err
		}
	}
}

// commit stores one prepared object and tells the handlers. It returns false when the object has to be
// prepared again because indexers were added meanwhile.
func (g *generation) commit(p store.Prepared, of *part) (bool, error) {
	i := g.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != g {
		return false, ErrGenerationOver
	}
	if of != nil && !of.admitsLocked(p) {
		return true, nil
	}
	old, ok := i.store.Put(p)
	if !ok {
		return false, nil
	}
	of.reachLocked(p.ResourceVersion)
	i.mu.log.replace(p, old)
	switch {
	case old == nil:
		i.tellLocked(added(p.Item, false))
	case sameUID(old, p.Item):
		i.tellLocked(updated(old, p.Item, sameVersion(old, p.Item)))
	default:
		i.tellLocked(lost(p.Key, old), added(p.Item, false))
	}
	return true, nil
}

// Delete implements cache.ReflectorStore. A key that the store does not hold was never shown to anyone (or
// was shown as deleted), so nobody is told.
func (g *generation) Delete(obj any) error { return g.delete(obj, nil) }

// delete removes an object of a part, if what is held under its key is of that; nil: of the only part.
func (g *generation) delete(obj any, of *part) error {
	i := g.informer
	item, failure := g.item(obj)
	if failure != nil {
		item = obj // the key and the resource version are still good
	}
	key, err := i.keyOf(item)
	if err != nil {
		return err
	}
	if err := g.remove(key, item, failure == nil, of); err != nil {
		return err
	}
	if failure != nil {
		utilruntime.HandleErrorWithLogger(g.logger, failure,
			"Delivering a deletion with the last known state", "key", key)
	}
	return nil
}

func (g *generation) remove(key string, final Item, known bool, of *part) error {
	i := g.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != g {
		return ErrGenerationOver
	}
	version := resourceVersion(final)
	if of != nil && !of.losesLocked(key, version) {
		return nil
	}
	of.reachLocked(version)
	old := i.store.Remove(key, version)
	if old == nil {
		i.mu.log.reach(version)
	} else {
		i.mu.log.record(key, version, old, nil)
	}
	switch {
	case old == nil:
	case known:
		i.tellLocked(deleted(final))
	default:
		i.tellLocked(lost(key, old))
	}
	return nil
}

// Bookmark implements cache.ReflectorBookmarkStore.
func (g *generation) Bookmark(resourceVersion string) error { return g.bookmark(resourceVersion, nil) }

// bookmark records how far the stream of a part has come; nil: that of the only part.
func (g *generation) bookmark(resourceVersion string, of *part) error {
	i := g.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != g {
		return ErrGenerationOver
	}
	i.store.SetResourceVersion(resourceVersion)
	of.reachLocked(resourceVersion)
	i.mu.log.reach(resourceVersion)
	return nil
}

// Resync implements cache.ReflectorStore: the handlers that are due get an update without a change for every
// object.
func (g *generation) Resync() error {
	i := g.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != g {
		return ErrGenerationOver
	}
	items := i.store.Snapshot().Items()
	batch := make([]notification, len(items))
	for k, item := range items {
		batch[k] = updated(item, item, true)
	}
	i.tellLocked(batch...)
	return nil
}

// shouldResync settles which handlers are due and reports whether any is.
func (g *generation) shouldResync() bool {
	i := g.informer
	now := i.clock.Now()
	i.mu.Lock()
	defer i.mu.Unlock()
	due := false
	for _, r := range i.mu.handlers {
		r.resyncing = r.dueLocked(now)
		due = due || r.resyncing
	}
	return due
}

// sameUID reports whether two items under one key are the same object. Items without a UID are taken to be.
func sameUID(a, b Item) bool {
	before, after := uidOf(a), uidOf(b)
	return before == after || before == "" || after == ""
}

// uidOf is empty for what has no metadata.
func uidOf(item Item) types.UID {
	if o, ok := item.(*packed.Object); ok {
		return o.UID()
	}
	if m, err := meta.Accessor(item); err == nil {
		return m.GetUID()
	}
	return ""
}

// sameVersion reports whether two items under one key have the same resource version: such an update comes
// from a relist or a resync and says nothing new.
func sameVersion(a, b Item) bool {
	before, known := versionOf(a)
	after, also := versionOf(b)
	return known && also && before == after
}

// versionOf is false for what has no metadata.
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

// resourceVersion is empty for what has no metadata. The result keeps no object in memory.
func resourceVersion(obj any) string {
	if m, err := meta.Accessor(obj); err == nil {
		return m.GetResourceVersion()
	}
	return ""
}
