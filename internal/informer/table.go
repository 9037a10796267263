package informer

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

// table is the Store that keeps objects as they are.
//
// Locks: write serialises everything that changes the content; mu is what readers take, and writers hold it
// only while they change what readers see. Order: write, then mu. Neither is held while an index function runs.
type table struct {
	report func(failures indexFailures)

	write sync.Mutex
	// indexes, funcs (in the same order; never changed in place) and version change together, under write and
	// mu. They include indexes that AddIndexers is still filling, so that writers keep those up to date;
	// published lists the ones that readers may use.
	indexes []*index
	funcs   namedFuncs
	version uint32

	mu        sync.RWMutex
	items     map[string]*entry
	published map[string]*index
	rv        string
}

var _ Store = (*table)(nil)

// newTable returns an empty table. report is called, without any lock, when index functions fail.
func newTable(indexers cache.Indexers, report func(indexFailures)) *table {
	t := &table{
		report:    report,
		funcs:     sortedFuncs(indexers),
		items:     map[string]*entry{},
		published: map[string]*index{},
	}
	for _, f := range t.funcs {
		x := newIndex(f.name)
		t.indexes = append(t.indexes, x)
		t.published[f.name] = x
	}
	return t
}

// Item implements Store: an object is kept as it is.
func (t *table) Item(object any) Item { return object }

// Object implements Store: an item is the object.
func (t *table) Object(item Item) any { return item }

// Put implements Store.
func (t *table) Put(p Prepared) (old Item, ok bool) {
	t.write.Lock()
	defer t.write.Unlock()
	if p.version != t.version {
		return nil, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.items[p.Key]
	if e == nil {
		e = &entry{key: p.Key}
		t.items[p.Key] = e
	}
	old, e.item, e.version = e.item, p.Item, p.version
	if !e.indexedAs(t.indexes, p.values) {
		e.detach()
		e.attachAll(t.indexes, p.values)
	}
	if p.ResourceVersion != "" {
		t.rv = p.ResourceVersion
	}
	return old, true
}

func (e *entry) attachAll(indexes []*index, values [][]string) {
	for k, x := range indexes {
		x.attach(e, values[k])
	}
}

// Remove implements Store.
func (t *table) Remove(key, resourceVersion string) (old Item) {
	t.write.Lock()
	defer t.write.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if resourceVersion != "" {
		t.rv = resourceVersion
	}
	e := t.items[key]
	if e == nil {
		return nil
	}
	e.detach()
	delete(t.items, key)
	return e.item
}

// Replace implements Store. The new content is built aside, so that readers wait for one swap only.
func (t *table) Replace(all []Prepared, resourceVersion string) (changes []Change, ok bool) {
	t.write.Lock()
	defer t.write.Unlock()
	items := make(map[string]*entry, len(all))
	indexes := make([]*index, len(t.indexes))
	for k, x := range t.indexes {
		indexes[k] = newIndex(x.name)
	}
	for _, p := range all {
		if p.version != t.version {
			return nil, false
		}
		e := items[p.Key]
		if e == nil {
			e = &entry{key: p.Key}
			items[p.Key] = e
		} else {
			e.detach()
		}
		e.item, e.version = p.Item, p.version
		e.attachAll(indexes, p.values)
	}
	changes = t.diff(items, all)

	t.mu.Lock()
	defer t.mu.Unlock()
	t.items, t.indexes, t.rv = items, indexes, resourceVersion
	for _, x := range indexes {
		if _, visible := t.published[x.name]; visible {
			t.published[x.name] = x
		}
	}
	return changes, true
}

// diff compares the present content with the next. Callers hold write, which is enough to read items.
func (t *table) diff(next map[string]*entry, all []Prepared) []Change {
	changes := make([]Change, 0, len(next))
	for key, e := range t.items {
		if next[key] == nil {
			changes = append(changes, Change{Key: key, Old: e.item})
		}
	}
	twice := len(all) != len(next)
	var seen sets.Set[string]
	if twice {
		seen = sets.New[string]()
	}
	for _, p := range all {
		if twice {
			if seen.Has(p.Key) {
				continue
			}
			seen.Insert(p.Key)
		}
		change := Change{Key: p.Key, New: next[p.Key].item}
		if e := t.items[p.Key]; e != nil {
			change.Old = e.item
		}
		changes = append(changes, change)
	}
	return changes
}

// SetResourceVersion implements Store.
func (t *table) SetResourceVersion(resourceVersion string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rv = resourceVersion
}

// AddIndexers implements Store. In three steps: from the first on, writers keep the new indexes; the second,
// the long one, runs the index functions over what was there before, without any lock; the third files those
// results, leaving out what was written or deleted meanwhile, and shows the complete indexes to readers.
func (t *table) AddIndexers(indexers cache.Indexers) error {
	added := sortedFuncs(indexers)
	if len(added) == 0 {
		return nil
	}
	version, snapshot, err := t.announce(indexers, added)
	if err != nil {
		return err
	}
	var failures indexFailures
	values := make([][][]string, len(snapshot))
	for i, s := range snapshot {
		values[i] = added.evaluate(s.entry.key, t.Object(s.item), &failures)
	}
	t.publish(added, version, snapshot, values)
	failures.to(t.report)
	return nil
}

// filed is an entry with the item that it held at the time of a snapshot.
type filed struct {
	entry *entry
	item  Item
}

// announce is the first step of AddIndexers.
func (t *table) announce(indexers cache.Indexers, added namedFuncs) (uint32, []filed, error) {
	t.write.Lock()
	defer t.write.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if taken := t.funcs.taken(indexers); len(taken) > 0 {
		return 0, nil, fmt.Errorf("indexer conflict: %v", taken)
	}
	t.funcs = slices.Concat(t.funcs, added)
	for _, f := range added {
		t.indexes = append(t.indexes, newIndex(f.name))
	}
	t.version++
	snapshot := make([]filed, 0, len(t.items))
	for _, e := range t.items {
		snapshot = append(snapshot, filed{entry: e, item: e.item})
	}
	return t.version, snapshot, nil
}

// publish is the third step of AddIndexers. An entry written since announce has a version at least as high and
// was indexed by its writer; one that was deleted or replaced is no longer in items.
func (t *table) publish(added namedFuncs, version uint32, snapshot []filed, values [][][]string) {
	t.write.Lock()
	defer t.write.Unlock()
	pending := make([]*index, len(added))
	for k, f := range added {
		for _, x := range t.indexes {
			if x.name == f.name {
				pending[k] = x
			}
		}
	}
	for i, s := range snapshot {
		if s.entry.version < version && t.items[s.entry.key] == s.entry {
			s.entry.attachAll(pending, values[i])
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, f := range added {
		t.published[f.name] = pending[k]
	}
}
