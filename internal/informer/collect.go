package informer

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/store"
)

// collectedList has the objects of the initial events of a watch-list. A reflector would put them into a
// temporary store and copy that to a list. Nearly always all events are ADDED, so a list is enough.
type collectedList struct {
	// version is the resource version of the final bookmark; complete is set after it.
	version   string
	complete  bool
	items     []any
	transform cache.TransformFunc // may be nil
	// streamed has the keys of the objects that were stored before the end. It is nil if none are.
	// prepared is scratch of storePart.
	streamed map[string]bool
	prepared []store.PreparedItem
	// falls is true if a list has to replace the streamed one, because an object was repeated.
	falls bool
	// indexByKey maps keys to positions in items. It is nil until an event changes an earlier one.
	indexByKey map[string]int
}

// collectEvent collects an event. The last one completes the list.
func (w *inlineWatch) collectEvent(ctx context.Context, c *collectedList, event watch.Event) {
	object, ok := w.metadataOf(ctx, event.Object)
	if !ok {
		return
	}
	var err error
	if c.streamed != nil && (event.Type != watch.Added || len(c.items) == streamedPart) {
		err = w.storePart(c, object, event.Type)
		c.falls = c.falls || err != nil
	}
	if event.Type == watch.Bookmark && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
		c.version, c.complete = object.GetResourceVersion(), !c.falls
	} else if err == nil {
		err = c.add(event)
	}
	if err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Unable to collect watch event",
			"reflector", w.informer.options.ObjectDescription, "type", event.Type)
	}
}

// metadataOf returns the metadata of the object of an event. It reports an error and returns false if that is
// not an object that can be stored.
func (w *inlineWatch) metadataOf(ctx context.Context, event runtime.Object) (metav1.Object, bool) {
	object, err := meta.Accessor(event)
	if err == nil && isTable(event) {
		err = errTable
	}
	if err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Unable to understand watch event", "reflector",
			w.informer.options.ObjectDescription)
		return nil, false
	}
	return object, true
}

var errUnknownEvent = errors.New("unknown watch event")

// add applies an initial event.
func (c *collectedList) add(event watch.Event) (err error) {
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted:
	case watch.Bookmark:
		return nil
	default:
		return errUnknownEvent
	}
	item := any(event.Object)
	if c.transform != nil && event.Type != watch.Deleted {
		if item, err = c.transform(item); err != nil {
			return err
		}
	}
	key, err := store.KeyOf(item)
	if err != nil {
		return err
	}
	if event.Type == watch.Added && c.indexByKey == nil || event.Type == watch.Modified && c.streamed != nil {
		c.append(item)
		return nil
	}
	if c.streamed != nil {
		return nil // deleted: see storePart
	}
	if err := c.mapKeys(); err != nil {
		return err
	}
	at, exists := c.indexByKey[key]
	switch {
	case event.Type == watch.Deleted && exists && !store.SameUID(c.items[at], item): // another object
	case event.Type == watch.Deleted && exists:
		c.items[at] = nil
		delete(c.indexByKey, key)
	case event.Type == watch.Deleted:
	case exists:
		c.items[at] = item
	default:
		c.indexByKey[key] = len(c.items)
		c.append(item)
	}
	return nil
}

// storeCollected stores the list. A streamed one does not serve late handlers.
func (p *partition) storeCollected(c *collectedList) error {
	if c.streamed == nil {
		return p.Replace(slices.DeleteFunc(c.items, func(item any) bool { return item == nil }), c.version)
	}
	p.lastList = listOutcome{}
	p.ListerWatcher.ListReceived(nil)
	p.isStreamed = true
	_, err := p.commitList(nil, c.streamed, c.version)
	if p.isStreamed = false; err == nil {
		p.reportListed()
	}
	return err
}

// streamsList reports whether the objects of the next watch-list are stored as they arrive: a relist of a
// store without objects, which would take many times its memory. Handlers have received such objects before.
func (p *partition) streamsList() bool {
	i := p.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	return !i.store.StoresObjects() && p.transform == nil && p.hasListed && !p.lacksObjectsLocked() &&
		p.Selection == nil && p.lastList.incomplete == nil && !i.mu.unconfirmed.any()
}

// streamedPart is the number of objects that a streamed list collects.
const streamedPart = 256

// storePart stores the collected objects of a streamed list before an event of an object. A changed object is
// listed again, and a deleted one is not listed.
func (p *partition) storePart(c *collectedList, next metav1.Object, event watch.EventType) error {
	prepared := slices.Grow(c.prepared, len(c.items))[:len(c.items)]
	for done := false; !done; {
		for n, item := range c.items {
			key, err := store.KeyOf(item)
			if err != nil {
				return err
			}
			prepared[n] = p.informer.store.Prepare(store.KeyedItem{Key: key, Item: item})
		}
		var err error
		if done, err = p.commitList(prepared, nil, ""); err != nil {
			return err
		}
	}
	snapshot := p.informer.store.Snapshot()
	for _, o := range prepared {
		p.informer.mutations.AddObject(o.Item)
		c.falls = c.falls || c.streamed[o.Key]
		c.streamed[snapshot.OwnKey(o.Key)] = true
	}
	clear(c.items)
	clear(prepared)
	c.items, c.prepared = c.items[:0], prepared[:0]
	key := cache.MetaObjectToName(next).String()
	stored, found := snapshot.Get(key)
	if event == watch.Modified || event == watch.Deleted && found && store.SameUID(stored, next) {
		delete(c.streamed, key)
	}
	return nil
}

// append doubles the capacity when it runs out. The builtin append adds a quarter, and leaves more garbage.
func (c *collectedList) append(item any) {
	if len(c.items) == cap(c.items) {
		c.items = slices.Grow(c.items, len(c.items))
	}
	c.items = append(c.items, item)
}

// mapKeys sets indexByKey. Of several objects with the same key, it retains only the last one.
func (c *collectedList) mapKeys() error {
	if c.indexByKey != nil {
		return nil
	}
	at := make(map[string]int, len(c.items))
	for n, item := range c.items {
		key, err := store.KeyOf(item)
		if err != nil {
			return err
		}
		if before, twice := at[key]; twice {
			c.items[before] = nil
		}
		at[key] = n
	}
	c.indexByKey = at
	return nil
}
