package informer

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdcache/crdcache/internal/informer/delivery"
)

// Partition selects the objects that one stream lists and watches during one run of the informer.
type Partition struct {
	// Namespace is the namespace of the objects. If it is empty, the partition has the objects of all
	// namespaces, and is the only one.
	Namespace string
	// Selection selects objects of the namespace. Nil selects all.
	Selection Selection
	// OnListed is called after each list, with no lock held. Optional.
	OnListed func()
	// ListerWatcher lists and watches the partition.
	ListerWatcher InlineWatcher
	// State has the persisted objects. All partitions of an incarnation share it. It is ignored for
	// partitions with a Selection. Optional.
	State PersistedState
}

// Selection selects objects by fields that never change. It changes only in Complete, and while
// Informer.EvictOutOfShard calls narrow. Implementations are pointers, by which partitions are compared.
type Selection interface {
	Has(object any) bool
	// IsIncomplete reports whether more objects should be selected, so that the partition has to be listed.
	IsIncomplete() bool
	// Complete selects them. It is called before a list.
	Complete()
	// RecordList is called when the selected objects have been stored.
	RecordList()
}

// GrowingSelection is a Selection by labels or names. Objects that it selects are listed without the others,
// and added. Objects that are no longer selected are deleted: they do not leave the shard.
type GrowingSelection interface {
	Selection
	// Part returns the next part to select. ok is false if the selection is complete.
	Part() (part SelectionPart, ok bool)
}

// SelectionPart is a part of a GrowingSelection that is listed on its own.
type SelectionPart struct {
	// Tweak sets the selectors of a list, and Has reports whether the part has a listed object.
	Tweak func(*metav1.ListOptions)
	Has   func(runtime.Object) bool
	// Select adds the part, as far as it is still to be selected. It is called like Selection.Complete.
	Select func()
}

func (p *Partition) prefix() string { return prefixOf(p.Namespace) }

// selects reports whether an object of the namespace is selected. Without a Selection, every object is.
func (p *Partition) selects(object any) bool { return p.Selection == nil || p.Selection.Has(object) }

// isShard reports whether objects that are not selected leave the shard, and are not deleted.
func (p Partition) isShard() bool {
	_, grows := p.Selection.(GrowingSelection)
	return !grows
}

// prefixOf returns the common prefix of the keys of a namespace.
func prefixOf(namespace string) string {
	if namespace == "" {
		return ""
	}
	return namespace + "/"
}

// RunPartition runs an incarnation with a partition of all objects until ctx ends. Handlers, indexers and
// objects of the previous incarnation stay (call Forget before to remove the objects). listed, if not nil, is
// called once when the partition has listed, with no lock held. It fails with ErrRunning or ErrStopped.
func (i *Informer) RunPartition(ctx context.Context, listed func(), p Partition) error {
	if p.ListerWatcher == nil {
		return errNoListerWatcher
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, err := i.beginIncarnation(ctx, cancel)
	if err != nil {
		return err
	}
	defer i.endIncarnation(g)
	g.onAllListed = listed
	only := g.partition(&p)
	g.runSinglePartition(only)
	only.restore(ctx, only)
	i.reflect(ctx, only)
	return nil
}

// runSinglePartition runs an incarnation with p as its only partition.
func (g *incarnation) runSinglePartition(p *partition) {
	i := g.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current == g {
		i.mu.partitions = []*partition{p}
	}
}

// EvictOutOfShard removes the objects from the store for which inShard returns false. This is not a deletion:
// only LeftShardHandlers are notified. It first calls narrow, which can narrow selections. Events are applied
// before narrow or after the removal. Both are called under the informer's lock and must not call it.
func (i *Informer) EvictOutOfShard(narrow func(), inShard func(Item) bool) {
	leftShard := func(_ string, item Item) delivery.Notification { return delivery.LeftShard(item) }
	i.evict(narrow, inShard, leftShard)
}

// Deselect is EvictOutOfShard for a GrowingSelection: it delivers deletions.
func (i *Informer) Deselect(narrow func(), selects func(Item) bool) {
	i.evict(narrow, selects, delivery.DeletedUnobserved)
}

// evict removes the objects for which keeps returns false.
func (i *Informer) evict(narrow func(), keeps func(Item) bool,
	exit func(string, Item) delivery.Notification) {
	i.mu.Lock()
	defer i.mu.Unlock()
	owners := i.ownersLocked()
	narrow()
	if i.mu.state == StateStopped {
		return
	}
	leaving := map[*partition][]delivery.Notification{}
	for key, item := range i.store.Snapshot().All {
		if !keeps(item) {
			i.store.Remove(key, "")
			leaving[owners[key]] = append(leaving[owners[key]], exit(key, item))
		}
	}
	for owner, exits := range leaving {
		i.notifyLocked(owner, exits...)
	}
	if len(leaving) > 0 {
		i.mu.log.reset(i.store.Snapshot().ResourceVersion())
		i.releaseWaitsLocked()
	}
}
