package informer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/store"
)

var errNoPartitions = errors.New("no partitions to run")

// Partition selects the objects of one reflector of a generation.
type Partition struct {
	// Namespace is the namespace of the objects. If it is empty, the partition has the objects of all
	// namespaces. It is then the only one, unless it has a Selection.
	Namespace string
	// Selection selects objects of the namespace. Nil selects all.
	Selection Selection
	// OnListed is called after each list, with no lock held. ordered is true if the resource versions are
	// ordered, so that other partitions can replace this one. Optional.
	OnListed func(ordered bool)
	// Replaces are the selections of running partitions of the namespace that this one replaces. It selects
	// the same objects as they do together, and continues from their resource versions.
	Replaces []Selection
	// ListerWatcher lists and watches the partition.
	ListerWatcher cache.ListerWatcher
	// State has the persisted objects. All partitions of a generation share it. It is ignored for partitions
	// with a Selection. Optional.
	State PersistedState
}

// Selection selects objects by fields that never change. It can be narrowed, but only while Informer.Depart
// calls narrow, and never widened. Implementations are pointers, because partitions are compared by them.
type Selection interface{ Has(object any) bool }

func (p Partition) prefix() string { return prefixOf(p.Namespace) }

// prefixOf returns the common prefix of the keys of a namespace.
func prefixOf(namespace string) string {
	if namespace == "" {
		return ""
	}
	return namespace + "/"
}

// RunPartitions runs a generation with one reflector for each partition until ctx ends. The partitions must
// be in different namespaces. They feed one store. Handlers, indexers and objects of the previous generation
// stay (call Forget before to remove the objects). RunPartitions fails with ErrRunning or ErrStopped.
//
// The informer has synced when all partitions have listed. listed, if not nil, is called once when all
// partitions have listed in this generation, with no lock held.
//
// A relist of one of several partitions replaces only its own objects. Readers see it object by object.
//
// The streams of several namespaces are not merged for one reflector. A reflector has one resource version,
// and would resume all namespaces from the version that any of them has reached. It would lose events, and an
// expired or forbidden namespace would end the watches of all.
func (i *Informer) RunPartitions(ctx context.Context, listed func(), partitions ...Partition) error {
	if err := check(partitions); err != nil {
		return err
	}
	if len(partitions) > 1 || partitions[0].Namespace != "" {
		return i.RunChangingPartitions(ctx, listed, only(partitions))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, err := i.begin(ctx, cancel, StateFresh, StateIdle)
	if err != nil {
		return err
	}
	defer i.end(g)
	g.onListed = listed
	if partitions[0].State != nil {
		i.reflectPersisted(ctx, g, &partitions[0])
		return nil
	}
	i.reflect(ctx, g, source{target: g, lw: partitions[0].ListerWatcher}, g.resyncCheck)
	return nil
}

func check(partitions []Partition) error {
	if len(partitions) == 0 {
		return errNoPartitions
	}
	for k := range partitions {
		if partitions[k].ListerWatcher == nil {
			return errNoListerWatcher
		}
	}
	return nil
}

// only returns a function that returns the partitions once, and then waits for the end of the context.
func only(partitions []Partition) func(context.Context) ([]Partition, bool) {
	return func(ctx context.Context) ([]Partition, bool) {
		if partitions == nil {
			<-ctx.Done()
			return nil, false
		}
		defer func() { partitions = nil }()
		return partitions, true
	}
}

// reflectPersisted is reflect for the only partition of a generation. The informers without persistence have
// smaller stacks because it is not a part of RunPartitions: see docs/design/types.md.
func (i *Informer) reflectPersisted(ctx context.Context, g *generation, of *Partition) {
	p := g.partition(*of)
	i.mu.Lock()
	g.partitions = 1
	if i.mu.current == g {
		i.mu.partitions = []*partition{p}
	}
	i.mu.Unlock()
	p.restore(ctx, []*partition{p})
	i.reflectPartition(ctx, p, p.resyncCheck)
}

// reflectPartition is reflect for a partition, which may have objects already.
func (i *Informer) reflectPartition(ctx context.Context, p *partition, resync time.Duration) {
	i.mu.Lock()
	from := source{target: p, lw: p.lw, version: p.version, latest: p.latest()}
	restored := i.mu.unconfirmed.namespaces[p.namespace()]
	i.mu.Unlock()
	if restored {
		from.version = p.resume(ctx)
	}
	i.reflect(ctx, p.generation, from, resync)
}

// RunEmpty is RunPartitions for a type that is known to have no objects. It sends no requests, removes the
// objects of the previous generation, and the informer has synced at once. It returns when ctx ends.
func (i *Informer) RunEmpty(ctx context.Context, listed func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, err := i.begin(ctx, cancel, StateFresh, StateIdle)
	if err != nil {
		return err
	}
	defer i.end(g)
	i.reflector.Store(nil)
	g.onListed = listed
	if err := g.Replace(nil, ""); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// partition is the store of the reflector of a Partition. A partition without persistence that is the only
// one of its generation has none: its reflector writes to the generation.
type partition struct {
	*generation
	prefix    string     // of the keys
	selection Selection  // nil selects all
	onListed  func(bool) // may be nil
	lw        cache.ListerWatcher
	state     PersistedState // nil if the partition is not persisted
	// The rest is guarded by Informer.mu.

	progress
	// hasListed is true if the generation does not wait for the first list of the partition, relisting if the
	// next list is not the first one.
	hasListed, relisting bool
}

func (g *generation) partition(p Partition) *partition {
	created := &partition{generation: g, prefix: p.prefix(), selection: p.Selection, onListed: p.OnListed,
		lw: p.ListerWatcher}
	if p.Selection == nil {
		created.state = p.State
	}
	return created
}

func (p *partition) namespace() string { return strings.TrimSuffix(p.prefix, "/") }

// isAll reports whether the partition has the objects of all namespaces.
func (p *partition) isAll() bool { return p.prefix == "" && p.selection == nil }

// isWholeLocked reports whether the partition is the only one. Its lists then replace the content atomically.
func (p *partition) isWholeLocked() bool { return p.partitions == 1 }

func (p *partition) isWhole() bool {
	p.informer.mu.Lock()
	defer p.informer.mu.Unlock()
	return p.isWholeLocked()
}

// Add implements cache.ReflectorStore.
func (p *partition) Add(obj any) error {
	if p.hasApplied(obj) {
		return nil
	}
	return p.put(obj, p)
}

// Update implements cache.ReflectorStore.
func (p *partition) Update(obj any) error { return p.Add(obj) }

// Delete implements cache.ReflectorStore.
func (p *partition) Delete(obj any) error {
	if p.hasApplied(obj) {
		return nil
	}
	return p.delete(obj, p)
}

// Bookmark implements cache.ReflectorBookmarkStore.
func (p *partition) Bookmark(resourceVersion string) error { return p.bookmark(resourceVersion, p) }

// Replace implements cache.ReflectorStore.
func (p *partition) Replace(list []any, resourceVersion string) error {
	all, err := p.itemsOf(list)
	if err != nil {
		return err
	}
	for _, item := range all.items {
		p.informer.mutations.AddObject(item)
	}
	for {
		done, err := p.replace(all, resourceVersion)
		if err != nil {
			return err
		}
		if done {
			p.settle()
			p.announce()
			if p.onListed != nil {
				p.onListed(isVersion(resourceVersion))
			}
			return nil
		}
	}
}

// replace stores a list. It returns false if the list has to be prepared again.
func (p *partition) replace(all *items, resourceVersion string) (bool, error) {
	if p.isWhole() {
		all = all.selected(p.selection)
		return p.commitWhole(all, p.informer.store.PrepareList(len(all.items), all.at), resourceVersion)
	}
	prepared := make([]store.Prepared, len(all.items))
	for k := range prepared {
		prepared[k] = p.informer.store.Prepare(all.at(k))
	}
	return p.commitList(prepared, resourceVersion)
}

// commitWhole replaces the content with the prepared list of the only partition.
func (p *partition) commitWhole(all *items, batch *store.Batch, resourceVersion string) (bool, error) {
	i := p.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != p.generation {
		return false, ErrGenerationOver
	}
	if !p.isWholeLocked() || !all.isSelected(p.selection) { // it was narrowed after the selection
		return false, nil
	}
	changes, ok := i.store.ReplaceList(batch, resourceVersion)
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
	if i.mu.current != p.generation {
		return false, ErrGenerationOver
	}
	p.version = ""
	changes := p.removeMissingLocked(prepared)
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
		p.recordLocked(listing{changes: changeList(changes)}, false)
		return false, nil
	}
	i.store.SetResourceVersion(resourceVersion)
	p.recordListedLocked(changeList(changes), resourceVersion)
	return true, nil
}

// recordListedLocked records the changes that a complete list has made.
func (p *partition) recordListedLocked(changes changes, resourceVersion string) {
	p.progress = progress{}
	if !unordered(resourceVersion) {
		p.version = resourceVersion
	}
	l := listing{changes: changes, unseen: p.confirmLocked()}
	if l.unseen {
		p.informer.mu.unconfirmed.listed = true
	}
	p.recordLocked(l, true)
}

// recordLocked records the changes that a list has made. done is true if the list is complete.
func (p *partition) recordLocked(l listing, done bool) {
	if done && p.relisting {
		p.informer.events.relists.Add(1)
	}
	first := done && !p.hasListed
	p.relisting, p.hasListed = p.relisting || done, p.hasListed || done
	p.recordListingLocked(l, first)
}

// removeMissingLocked removes the objects of the partition that are missing from the list.
func (p *partition) removeMissingLocked(list []store.Prepared) []store.Change {
	present := make(map[string]bool, len(list))
	for _, next := range list {
		present[next.Key] = true
	}
	return p.informer.removeLocked(p.prefix,
		func(key string) bool { return !present[key] && p.ownsLocked(key) })
}

// admitsLocked reports whether an object is to be stored. Selections do not depend on keys, so two objects
// with the same key, one after the other, can belong to two partitions. The streams of these may be at
// different times. The newer object stays.
func (p *partition) admitsLocked(next store.Prepared) bool {
	if p.selection == nil {
		return true
	}
	if !p.selection.Has(next.Item) {
		return false
	}
	old, found := p.informer.store.Snapshot().Get(next.Key)
	return !found || p.hasDelivered(old) || !older(resourceVersion(next.Item), resourceVersion(old))
}

// hasDelivered reports whether the partition's own stream has delivered a stored object. Its next event is
// then newer.
func (p *partition) hasDelivered(stored Item) bool {
	return p.selection.Has(stored) && len(p.ahead) == 0
}

// ownsLocked reports whether the object that is stored under a key belongs to the partition.
func (p *partition) ownsLocked(key string) bool {
	if p.selection == nil {
		return true
	}
	stored, found := p.informer.store.Snapshot().Get(key)
	return !found || p.selection.Has(stored)
}

// deletesLocked reports whether an event of a deleted object deletes the object that is stored under its key,
// which may be another one.
func (p *partition) deletesLocked(key, version string) bool {
	if p.selection == nil {
		return true
	}
	stored, found := p.informer.store.Snapshot().Get(key)
	return !found || p.hasDelivered(stored) || p.selection.Has(stored) &&
		!older(version, resourceVersion(stored))
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

// content returns keys. A *store.Snapshot is one.
type content interface {
	Keys() []string
	KeysByIndex(name, value string) ([]string, error)
}

// keysOf returns the keys with a prefix of prefixOf. If there is an index by namespace, the cost does not
// depend on the number of objects in other namespaces.
func keysOf(now content, prefix string) []string {
	if prefix == "" {
		return now.Keys()
	}
	keys, err := now.KeysByIndex(cache.NamespaceIndex, strings.TrimSuffix(prefix, "/"))
	if err != nil {
		keys = now.Keys()
	}
	return slices.DeleteFunc(keys, func(key string) bool { return !strings.HasPrefix(key, prefix) })
}

// Depart removes the objects from the store for which stays returns false, without deleting them: only
// handlers that are Departed are notified. Before that it calls narrow, which may narrow selections. Events
// are applied before or after both. narrow and stays are called under the informer's lock and must not call
// the informer.
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
		i.mu.log.reset(i.store.Snapshot().ResourceVersion())
		i.notifyLocked(leaving...)
	}
}
