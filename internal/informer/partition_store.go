package informer

import (
	"context"
	"slices"
	"strings"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/informer/delivery"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/store"
)

// partition stores the objects of one Partition. Each event is a write to the informer's store
// and a notification in each queue.
type partition struct {
	Partition
	*incarnation

	// Only partitionSet uses these fields. reflectorDone is closed when the reflector has ended.
	stopReflector context.CancelFunc
	reflectorDone chan struct{}

	// The rest is guarded by Informer.mu.

	// resumeVersion is the resource version at which the store has all selected objects, so that a watch can
	// continue from it. It is empty if there is none, for example after a user has written to the cache.
	resumeVersion string
	// observedVersion is the version that the stream has reached. Unlike resumeVersion, writes of users do
	// not clear it. It is empty before the first list, and "0" after a list without a version.
	observedVersion string
	// hasListed is true once the incarnation does not need a first list of the partition to be synced.
	// relisting is true if the next list is a relist.
	hasListed, relisting bool
	// untransformed has the keys of the objects that are missing or old, because the transform failed.
	untransformed map[string]bool
	// listNumber is Handlers.Lists after the last complete list of the partition; 0 before the first.
	listNumber int
	// lastList is the outcome of the last complete list. Only the reflector uses it.
	lastList listOutcome
	// clientGoMetrics is nil without client-go's metrics.
	clientGoMetrics *clientGoMetrics
	// polled is true if lists replace watches. Only the reflector uses it.
	polled bool
	// listsMissing is true if the next list only serves late handlers and a Selection that has grown.
	listsMissing bool
	// isStreamed is true while a streamed list is completed. Only the reflector uses it.
	isStreamed bool
}

func (g *incarnation) partition(p *Partition) *partition {
	created := &partition{Partition: *p, incarnation: g,
		clientGoMetrics: newClientGoMetrics(g.informer.metricsID)}
	if p.Selection != nil {
		created.State = nil
	}
	return created
}

// isAll reports whether the partition has the objects of all namespaces.
func (p *partition) isAll() bool { return p.Namespace == "" && p.Selection == nil }

// isCompleteLocked reports whether it is the only partition. Its lists replace the content atomically.
func (p *partition) isCompleteLocked() bool { return len(p.informer.mu.partitions) == 1 }

func (p *partition) isComplete() bool {
	p.informer.mu.Lock()
	defer p.informer.mu.Unlock()
	return p.isCompleteLocked()
}

// Replace stores a list. A list or watch-list replaces the objects of the partition, and
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
	untransformed := listed.untransformed
	for {
		done, err := p.replace(listed, resourceVersion)
		if err != nil {
			return err
		}
		if done {
			p.informer.mu.Lock()
			p.untransformed = untransformed
			p.informer.mu.Unlock()
			p.reportListed()
			return nil
		}
	}
}

// reportListed reports that a complete list has been stored.
func (p *partition) reportListed() {
	p.reportRestoration()
	if p.OnListed != nil { // first, so that the ranges of a synced informer are listed
		p.OnListed()
	}
	p.callOnAllListed()
}

// replace stores a list. It returns false if the list has to be prepared again.
func (p *partition) replace(listed *items, resourceVersion string) (bool, error) {
	if p.isComplete() {
		listed = listed.selected(p.Selection)
		batch := p.informer.store.PrepareList(len(listed.items), listed.itemWithKey)
		distinct := p.withDistinctKeys(listed, batch.Len())
		if distinct != listed {
			listed = distinct
			batch = p.informer.store.PrepareList(len(listed.items), listed.itemWithKey)
		}
		return p.commitWhole(listed, batch, resourceVersion)
	}
	keys := make(map[string]bool, len(listed.items))
	for k := range listed.items {
		keys[listed.itemWithKey(k).Key] = true
	}
	listed = p.withDistinctKeys(listed, len(keys))
	prepared := make([]store.PreparedItem, len(listed.items))
	for k := range prepared {
		prepared[k] = p.informer.store.Prepare(listed.itemWithKey(k))
		keys[prepared[k].Key] = true
	}
	return p.commitList(prepared, keys, resourceVersion)
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

// commitList stores the prepared list of one of several partitions; listed has its keys, or is nil for a part
// of a list. If it returns false, the handlers have been notified of the objects stored so far.
func (p *partition) commitList(prepared []store.PreparedItem, listed map[string]bool,
	resourceVersion string) (bool, error) {
	i := p.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != p.incarnation {
		return false, ErrIncarnationOver
	}
	for _, next := range prepared {
		if !p.selects(next.Item) { // the selection was narrowed since the request
			delete(listed, next.Key)
		}
	}
	p.resumeVersion = ""
	isWhole, done := listed != nil, true
	var changes []store.Change
	if isWhole {
		changes = i.removeLocked(p.prefix(), func(key string) bool { return !listed[key] })
	}
	for _, next := range prepared {
		if isWhole && !listed[next.Key] {
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
	if !done || !isWhole {
		p.recordLocked(delivery.List{Changes: delivery.ChangeSlice(changes)}, false)
		return done, nil
	}
	i.store.SetResourceVersion(resourceVersion)
	p.recordListedLocked(delivery.ChangeSlice(changes), resourceVersion)
	return true, nil
}

// recordListedLocked records the changes that a complete list has made.
func (p *partition) recordListedLocked(changes delivery.Changes, resourceVersion string) {
	p.observedVersion, p.resumeVersion = p.informer.observedListLocked(p.observedVersion, resourceVersion), ""
	if !isUnordered(resourceVersion) {
		p.resumeVersion = resourceVersion
	}
	if p.Selection != nil {
		p.Selection.RecordList()
	}
	l := delivery.List{Changes: changes, HandlersLackOld: p.confirmLocked()}
	if l.HandlersLackOld {
		p.informer.mu.unconfirmed.listed = true
	}
	p.recordLocked(l, true)
}

// recordLocked adds the changes of a list to the history. done is true if the list is complete.
func (p *partition) recordLocked(l delivery.List, done bool) {
	if done && p.relisting && !p.polled {
		p.informer.mu.handlers.Events.Relists++
	}
	first := done && !p.hasListed
	p.relisting, p.hasListed = p.relisting || done, p.hasListed || done
	l.Complete, l.WithoutResyncs = done && !p.isStreamed, p.listsMissing || p.polled
	p.listsMissing = p.listsMissing && !done
	p.lastList.changed = p.recordListLocked(p, l, first) && p.informer.store.StoresObjects()
}

// advanceLocked records that the stream has been applied up to a resource version.
func (p *partition) advanceLocked(version string) {
	if p.resumeVersion != "" && version != "" {
		p.resumeVersion = version
	}
	p.observedVersion = laterVersion(p.observedVersion, version)
	p.informer.releaseWaitsLocked()
}

// laterVersion returns the later version, or a if they are not ordered.
func laterVersion(a, b string) string {
	if naming.IsOlder(a, b) {
		return b
	}
	return a
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
