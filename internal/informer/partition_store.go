package informer

import (
	"context"
	"slices"
	"strings"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/store"
)

// partition is the store of the reflector of a Partition. Each event is a write to the informer's store and a
// notification in each queue.
type partition struct {
	Partition
	*incarnation
	// continued are the ended partitions that this one continues, until it runs.
	continued []*partition

	// Only partitionSet uses these fields. reflectorDone is closed when the reflector has ended. replaced is
	// true if another partition continues where this one has ended.
	stopReflector context.CancelFunc
	reflectorDone chan struct{}
	replaced      bool

	// The rest is guarded by Informer.mu.

	progress
	// hasListed is true if the incarnation does not wait for the first list of the partition. relisting is
	// true if the next list is a relist.
	hasListed, relisting bool
	// listNumber is Informer.mu.lists after the last complete list of the partition; 0 before the first.
	listNumber int
	// listsForHandler is true if the next list only serves late handlers.
	listsForHandler bool
}

func (g *incarnation) partition(p *Partition) *partition {
	created := &partition{Partition: *p, incarnation: g}
	if p.Selection != nil {
		created.State = nil
	}
	return created
}

// isAll reports whether the partition has the objects of all namespaces.
func (p *partition) isAll() bool { return p.Namespace == "" && p.Selection == nil }

// isCompleteLocked reports whether the partition is the only one. Its lists then replace the content
// atomically.
func (p *partition) isCompleteLocked() bool { return len(p.informer.mu.partitions) == 1 }

func (p *partition) isComplete() bool {
	p.informer.mu.Lock()
	defer p.informer.mu.Unlock()
	return p.isCompleteLocked()
}

// Replace implements cache.ReflectorStore. A list or watch-list replaces the objects of the partition, and
// the handlers are notified of the differences, deletions first. It is the initial list if the informer has
// not synced. Replace reuses the memory of the list.
func (p *partition) Replace(list []any, resourceVersion string) error {
	listed, err := p.itemsOf(list)
	if err != nil {
		return err
	}
	for _, item := range listed.items {
		p.informer.mutations.AddObject(item)
	}
	for {
		done, err := p.replace(listed, resourceVersion)
		if err != nil {
			return err
		}
		if done {
			p.reportRestoration()
			if p.OnListed != nil { // first, so that the ranges of a synced informer are listed
				p.OnListed(naming.IsVersion(resourceVersion))
			}
			p.callOnAllListed()
			return nil
		}
	}
}

// replace stores a list. It returns false if the list has to be prepared again.
func (p *partition) replace(listed *items, resourceVersion string) (bool, error) {
	if p.isComplete() {
		listed = listed.selected(p.Selection)
		return p.commitWhole(listed, p.informer.store.PrepareList(len(listed.items), listed.itemWithKey),
			resourceVersion)
	}
	prepared := make([]store.Prepared, len(listed.items))
	for k := range prepared {
		prepared[k] = p.informer.store.Prepare(listed.itemWithKey(k))
	}
	return p.commitList(prepared, resourceVersion)
}

// commitWhole replaces the content with the prepared list of the only partition.
func (p *partition) commitWhole(listed *items, batch *store.Batch, resourceVersion string) (bool, error) {
	i := p.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != p.incarnation {
		return false, ErrIncarnationOver
	}
	if !p.isCompleteLocked() || !listed.isSelected(p.Selection) { // the selection was narrowed concurrently
		return false, nil
	}
	changes, ok := i.store.Replace(batch, resourceVersion)
	if !ok {
		return false, nil
	}
	i.mu.log.reset(resourceVersion)
	p.recordListedLocked(changes, resourceVersion)
	return true, nil
}

// commitList stores the prepared list of one of several partitions. If it returns false, the handlers have
// been notified of the objects stored so far.
func (p *partition) commitList(prepared []store.Prepared, resourceVersion string) (bool, error) {
	i := p.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != p.incarnation {
		return false, ErrIncarnationOver
	}
	p.version = ""
	listed := make(map[string]bool, len(prepared))
	for _, next := range prepared {
		listed[next.Key] = true
	}
	changes := i.removeLocked(p.prefix(), func(key string) bool { return !listed[key] && p.ownsLocked(key) })
	done := true
	for _, next := range prepared {
		if !p.admitsLocked(next) {
			continue
		}
		old, ok := i.store.Put(next)
		if !ok {
			done = false
			break
		}
		changes = append(changes, store.Change{Key: next.Key, Old: old, New: next.Item})
	}
	i.mu.log.reset(resourceVersion)
	if !done {
		p.recordLocked(listChanges{changes: changeSlice(changes)}, false)
		return false, nil
	}
	i.store.SetResourceVersion(resourceVersion)
	p.recordListedLocked(changeSlice(changes), resourceVersion)
	return true, nil
}

// recordListedLocked records the changes that a complete list has made.
func (p *partition) recordListedLocked(changes changeList, resourceVersion string) {
	p.progress = progress{observed: p.informer.observedListLocked(p.observed, resourceVersion)}
	if !isUnordered(resourceVersion) {
		p.version = resourceVersion
	}
	l := listChanges{changes: changes, handlersLackOld: p.confirmLocked()}
	if l.handlersLackOld {
		p.informer.mu.unconfirmed.listed = true
	}
	p.recordLocked(l, true)
}

// recordLocked records the changes that a list has made. done is true if the list is complete.
func (p *partition) recordLocked(l listChanges, done bool) {
	if done && p.relisting {
		p.informer.mu.events.Relists++
	}
	first := done && !p.hasListed
	p.relisting, p.hasListed = p.relisting || done, p.hasListed || done
	l.partition, l.complete = p, done
	l.withoutResyncs = p.listsForHandler
	p.listsForHandler = p.listsForHandler && !done
	p.recordListLocked(l, first)
}

// admitsLocked reports whether an object from the partition's stream must be stored.
func (p *partition) admitsLocked(next store.Prepared) bool {
	return p.Selection == nil ||
		p.Selection.Has(next.Item) && p.supersedesLocked(next.Key, resourceVersion(next.Item))
}

// supersedesLocked reports whether an event with a resource version is newer than the object that is stored
// under its key. An object that is recreated under the same key can belong to another partition, because
// selections do not depend on keys, and the streams of two partitions can have reached different versions. If
// the partition's own stream has delivered the stored object, its next event is newer.
func (p *partition) supersedesLocked(key, version string) bool {
	stored, found := p.informer.store.Snapshot().Get(key)
	return !found || p.Selection.Has(stored) && len(p.aheadRanges) == 0 ||
		!naming.IsOlder(version, resourceVersion(stored))
}

// ownsLocked reports whether the object that is stored under a key belongs to the partition.
func (p *partition) ownsLocked(key string) bool {
	if p.Selection == nil {
		return true
	}
	stored, found := p.informer.store.Snapshot().Get(key)
	return !found || p.Selection.Has(stored)
}

// removeLocked removes the objects with the prefix in their keys for which remove returns true.
func (i *Informer) removeLocked(prefix string, remove func(key string) bool) []store.Change {
	var changes []store.Change
	for _, key := range keysOf(i.store.Snapshot(), prefix) {
		if remove(key) {
			changes = append(changes, store.Change{Key: key, Old: i.store.Remove(key, "")})
		}
	}
	i.mu.log.reset(i.store.Snapshot().ResourceVersion())
	return changes
}

// keySource returns keys.
type keySource interface {
	Keys() []string
	KeysByIndex(name, value string) ([]string, error)
}

// keysOf returns the keys with a prefix of prefixOf. If there is an index by namespace, the cost does not
// depend on the number of objects in other namespaces.
func keysOf(snapshot keySource, prefix string) []string {
	if prefix == "" {
		return snapshot.Keys()
	}
	keys, err := snapshot.KeysByIndex(cache.NamespaceIndex, strings.TrimSuffix(prefix, "/"))
	if err != nil {
		keys = snapshot.Keys()
	}
	return slices.DeleteFunc(keys, func(key string) bool { return !strings.HasPrefix(key, prefix) })
}
