package informer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/crdcache/crdcache/internal/informer/delivery"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/store"
)

// items are the items of a list with their keys. Packed objects have their own, to save memory.
type items struct {
	items []Item
	keys  []string // nil if all items are packed objects with their own keys
	// untransformed has the keys of the objects whose transform failed; nil if there are none.
	untransformed map[string]bool
}

// itemWithKey returns item n with its key.
func (l *items) itemWithKey(n int) store.KeyedItem {
	if l.keys != nil {
		return store.KeyedItem{Key: l.keys[n], Item: l.items[n]}
	}
	return store.KeyedItem{Key: l.items[n].(*packed.Object).Key(), Item: l.items[n]}
}

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

// selected returns the items that are selected; a nil selection selects all.
func (l *items) selected(selection Selection) *items {
	if selection == nil {
		return l
	}
	selected := &items{items: make([]Item, 0, len(l.items))}
	for n := range l.items {
		if k := l.itemWithKey(n); selection.Has(k.Item) {
			selected.add(k.Key, k.Item)
		}
	}
	return selected
}

func (l *items) isSelected(selection Selection) bool {
	return selection == nil ||
		!slices.ContainsFunc(l.items, func(item Item) bool { return !selection.Has(item) })
}

// listOutcome is the outcome of a list that was stored.
type listOutcome struct {
	changed    bool  // an object has changed
	incomplete error // why the cache lacks listed objects, or nil
	// repeatedKeys are the keys of several listed objects; nil if there are none.
	repeatedKeys map[string]bool
}

// withDistinctKeys returns the items with distinct keys, of which there are keys before. It records whether
// the cache lacks objects because several have the same key. Some servers list the objects of several
// workspaces, clusters or catalogs together.
func (p *partition) withDistinctKeys(listed *items, keys int) *items {
	before := p.lastList.incomplete
	p.lastList = listOutcome{}
	if keys != len(listed.items) {
		listed = p.separateRepeated(listed, keys)
	}
	p.ListerWatcher.ListReceived(p.lastList.incomplete)
	if before == nil && p.lastList.incomplete != nil {
		p.logger.Info("Warning: the cache is incomplete", "type", p.informer.options.ObjectDescription,
			"reason", p.lastList.incomplete.Error())
	}
	return listed
}

// maxNamedObjects bounds the missing objects that a message names.
const maxNamedObjects = 20

// separateRepeated keeps one object of each key, or with KeepRepeated all, under numbered keys. The choice
// and the numbers do not depend on the order of the list.
func (p *partition) separateRepeated(listed *items, keys int) *items {
	byKey := map[string][]Item{}
	for n := range listed.items {
		k := listed.itemWithKey(n)
		byKey[k.Key] = append(byKey[k.Key], k.Item)
	}
	distinct := &items{items: make([]Item, 0, len(listed.items)), untransformed: listed.untransformed}
	repeated, missing := map[string]bool{}, []string(nil)
	for n := range listed.items {
		key := listed.itemWithKey(n).Key
		same := byKey[key]
		delete(byKey, key)
		if len(same) > 1 {
			key = strings.Clone(key)
			slices.SortStableFunc(same, compareRepeated)
		}
		if p.informer.options.KeepRepeated {
			distinct.addNumbered(key, same)
		} else if len(same) > 0 {
			last := len(same) - 1
			distinct.add(key, same[last])
			for _, item := range same[:last] {
				// Otherwise the list has one object twice.
				if uid := store.UIDOf(item); uid == "" || uid != store.UIDOf(same[last]) {
					repeated[key] = true
					text := fmt.Sprintf("%s (UID %s)", key, uid)
					missing = append(missing, strings.TrimSuffix(text, " (UID )"))
				}
			}
		}
	}
	if len(missing) > 0 {
		p.lastList.repeatedKeys = repeated
		more := ""
		if len(missing) > maxNamedObjects {
			more = fmt.Sprintf(" and %d more", len(missing)-maxNamedObjects)
		}
		p.lastList.incomplete = fmt.Errorf("the server lists %d objects with only %d different names: "+
			"the cache has one object of each name, and lacks another %s%s", len(listed.items), keys,
			strings.Join(missing[:min(len(missing), maxNamedObjects)], ", "), more)
	}
	return distinct
}

// addNumbered adds objects of one key, all but the first under numbered keys.
func (l *items) addNumbered(key string, same []Item) {
	for n, item := range same {
		numbered := key
		if n > 0 {
			numbered = naming.NumberedKey(key, n)
		}
		if o, ok := item.(*packed.Object); ok && n > 0 {
			item = o.WithKey(numbered)
		}
		l.add(numbered, item)
	}
}

// compareRepeated orders objects of one key by UID, then by resource version and then by content.
func compareRepeated(a, b Item) int {
	byVersion, _ := naming.CompareVersions(store.VersionOf(a), store.VersionOf(b)) // 0 without an order
	return cmp.Or(strings.Compare(string(store.UIDOf(a)), string(store.UIDOf(b))), byVersion,
		strings.Compare(contentOf(a), contentOf(b)))
}

// contentOf returns the object as JSON. It returns "" for values that JSON cannot represent.
func contentOf(item Item) string {
	var text []byte
	if o, ok := item.(*packed.Object); ok {
		_ = o.PeekJSON(func(json []byte) error { text = slices.Clone(json); return nil })
	} else {
		text, _ = json.Marshal(item)
	}
	return string(text)
}

// itemsOf transforms the objects of a list, in the memory of the list, and computes their keys. It reports an
// object whose transform fails; the stored version of such an object stays, so that no handler is notified of
// a deletion that did not happen.
func (g *incarnation) itemsOf(list []any) (*items, error) {
	i := g.informer
	listed := &items{items: list[:0]}
	var firstFailure error
	failures := 0
	if format, packs := i.store.Format().(*store.Packed); packs {
		format.RestartList()
	}
	for _, obj := range list {
		item, failure := g.listedItem(obj)
		if failure != nil {
			item = obj
		}
		key, err := store.KeyOf(item)
		if err != nil {
			return nil, err
		}
		if failure == nil {
			listed.add(key, item)
			continue
		}
		if failures++; failures == 1 {
			firstFailure = fmt.Errorf("object %q: %w", key, failure)
			listed.untransformed = map[string]bool{}
		}
		listed.untransformed[key] = true
		if stored, found := i.store.Snapshot().Get(key); found {
			listed.add(key, stored)
		}
	}
	if failures > 0 {
		utilruntime.HandleErrorWithLogger(g.logger, firstFailure,
			"Cannot transform listed objects, keeping their stored versions", "objects", failures)
	}
	return listed, nil
}

// recordListLocked notifies the handlers of the changes of a list, and reports whether there are any. p is
// nil for several partitions. first is true for the first list of a partition in this incarnation. The last
// of them syncs the informer.
func (g *incarnation) recordListLocked(p *partition, l delivery.List, first bool) (changed bool) {
	i := g.informer
	synced := i.synced.Load()
	initial := !synced.Reached()
	l.Initial, l.FirstOfIncarnation = initial, first && (!initial || i.mu.handlers.Lists > 0)
	changed = i.notifyListLocked(p, l)
	if l.Complete {
		i.mu.handlers.Lists++
		p.listNumber = i.mu.handlers.Lists
	}
	if first {
		g.pendingLists--
	}
	if initial && g.pendingLists == 0 {
		synced.MarkReached()
		i.mu.log.notify()
		i.mu.handlers.PushSynced()
	}
	i.recordCaughtUpLocked()
	i.releaseWaitsLocked()
	return changed
}

// callOnAllListed calls onAllListed once if no lists are pending.
func (g *incarnation) callOnAllListed() {
	i := g.informer
	i.mu.Lock()
	listed := g.onAllListed
	if g.pendingLists > 0 {
		listed = nil
	} else {
		g.onAllListed = nil
	}
	i.mu.Unlock()
	if listed != nil {
		listed()
	}
}
