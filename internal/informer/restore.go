package informer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/crdcache/crdcache/internal/informer/delivery"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/store"
)

// PersistedState gives access to the objects that an earlier process persisted.
type PersistedState interface {
	// Load returns the persisted objects, or nil if none were persisted for the current cluster and
	// definition of the type. It is called before the server has responded, and again afterwards, when the
	// server can be identified. If the second call returns nil, the result of the first one is invalid.
	Load(ctx context.Context, responded bool) *RestoredContent
	// OnServingChange is called with true when readers see the restored objects, and with false when they
	// no longer do, or when the server has confirmed the objects but the informer has not synced.
	OnServingChange(unconfirmed bool)
	// OnConfirmed is called when the server has confirmed all restored objects.
	OnConfirmed()
}

// RestoredContent is the content of the cache of an earlier process.
type RestoredContent struct {
	Items []Item
	// Versions has the resource version to watch from of each namespace, or of everything ("").
	Versions map[string]string
}

// restore loads the persisted objects of the first partitions of an incarnation, and stores them. Readers see
// them immediately. Later, resume confirms each partition with the server. restore does nothing if the store
// has objects of an earlier incarnation, because handlers have received those.
func (g *incarnation) restore(ctx context.Context, partitions ...*partition) {
	var state PersistedState // which the partitions share
	var lw InlineWatcher
	for _, p := range partitions {
		if p.State != nil {
			state, lw = p.State, p.ListerWatcher
		}
	}
	if state == nil || g.informer.HasSynced() || g.informer.store.Snapshot().Len() > 0 {
		return
	}
	// If an index function panics, the partitions are listed.
	defer utilruntime.HandleCrashWithContext(ctx)
	restored := state.Load(ctx, false)
	if restored == nil { // the cluster may be the same one at another address
		if partitions[0].isAll() {
			if _, err := lw.CurrentVersion(ctx); err != nil {
				return
			}
		}
		restored = state.Load(ctx, true)
	}
	if restored == nil {
		return
	}
	if err := g.storeRestored(restored, state, partitions); err != nil {
		klog.FromContext(ctx).Info("Cannot restore persisted objects, listing them", "reflector",
			g.informer.options.ObjectDescription, "err", err)
	}
}

// storeRestored stores the restored objects of the partitions.
func (g *incarnation) storeRestored(restored *RestoredContent, state PersistedState,
	partitions []*partition) error {
	i := g.informer
	versions := map[string]string{}
	for _, p := range partitions {
		version := cmp.Or(restored.Versions[p.Namespace], restored.Versions[""])
		if version != "" && p.State != nil {
			versions[p.Namespace] = version
		}
	}
	if len(versions) == 0 {
		return nil
	}
	keyed := make([]store.KeyedItem, 0, len(restored.Items))
	for _, item := range restored.Items {
		if versions[""] == "" && versions[store.NamespaceOf(item)] == "" {
			continue
		}
		key, err := store.KeyOf(item)
		if err != nil {
			return err
		}
		keyed = append(keyed, store.KeyedItem{Key: key, Item: item})
	}
	for {
		batch := i.store.PrepareAll(keyed)
		done, err := g.commitRestored(batch, versions, state, partitions)
		if err != nil {
			return err
		}
		if done {
			state.OnServingChange(true)
			return nil
		}
	}
}

// commitRestored stores a prepared batch of restored objects. If it returns false, prepare it again.
func (g *incarnation) commitRestored(batch *store.Batch, versions map[string]string, state PersistedState,
	partitions []*partition) (bool, error) {
	i := g.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != g {
		return false, ErrIncarnationOver
	}
	if _, ok := i.store.Replace(batch, versions[""]); !ok {
		return false, nil
	}
	i.mu.unconfirmed = unconfirmedRestore{namespaces: map[string]bool{}, state: state}
	for _, p := range partitions {
		if version := versions[p.Namespace]; version != "" {
			p.resumeVersion = version
			i.mu.unconfirmed.namespaces[p.Namespace] = true
		}
	}
	i.mu.log.reset(versions[""])
	return true, nil
}

// maxConfirmationWatches is the number of watches that may end unconfirmed before everything is listed.
const maxConfirmationWatches = 4

// startConfirmation confirms the restored objects of a partition, which are at version, with the server. They
// are current if the server has not advanced since they were persisted, or after a watch from their version
// has delivered an event or bookmark of the server's version, which the stream then awaits. An accepted watch
// is not sufficient, because its events may still arrive. Otherwise the partition is listed.
func (w *inlineWatch) startConfirmation(ctx context.Context, version string) {
	defer utilruntime.HandleCrashWithContext(ctx)
	goal, err := w.lw.CurrentVersion(ctx)
	if err != nil {
		return // ctx has ended
	}
	order, err := naming.CompareVersions(version, goal)
	switch {
	case w.State.Load(ctx, true) == nil:
		w.dropRestored()
		err = errors.New("the objects belong to another cluster or type")
	case order > 0:
		err = fmt.Errorf("the server is at version %s, which is before %s", goal, version)
	}
	if err != nil {
		w.stopConfirmation(ctx, err)
		return
	}
	w.version, w.awaited, w.canWatch = version, goal, true
	w.recordProgress(ctx)
}

// isConfirming reports whether the stream awaits the version at which the restored objects are current.
func (w *inlineWatch) isConfirming() bool { return w.awaited != "" && w.Selection == nil }

// stopConfirmation makes the stream list everything.
func (w *inlineWatch) stopConfirmation(ctx context.Context, reason error) {
	klog.FromContext(ctx).Info("Cannot confirm restored objects, listing them", "reflector",
		w.informer.options.ObjectDescription, "why", reason)
	w.informer.mu.Lock()
	w.version, w.awaited, w.canWatch = "", "", false
	w.informer.mu.Unlock()
}

// countConfirmation counts the watches that have to confirm restored objects, and ends the confirmation if
// there are too many.
func (w *inlineWatch) countConfirmation(ctx context.Context) {
	if !w.isConfirming() {
		return
	}
	if w.confirmations++; w.confirmations > maxConfirmationWatches {
		w.stopConfirmation(ctx, errors.New("no watch has reached the version of the server"))
	}
}

// deliverConfirmed delivers the objects of the partition to the handlers as its first list.
func (p *partition) deliverConfirmed(ctx context.Context, version string) {
	if !p.confirmStored(version) {
		return // the incarnation is over
	}
	p.reportRestoration()
	p.callOnAllListed()
	p.informer.workers.Go(func() { p.informer.extractBlocks(ctx) }) // ended by ctx, with the incarnation
}

func (p *partition) confirmStored(version string) bool {
	i := p.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != p.incarnation {
		return false
	}
	p.confirmLocked()
	p.observedVersion = version
	l := delivery.List{Changes: delivery.ChangeSlice(nil)}
	if snapshot := i.store.Snapshot(); i.mu.handlers.Len() > 0 || !p.isAll() {
		l.Changes = p.restoredAdditions(snapshot)
	} else {
		i.mu.handlers.Events.Adds += int64(snapshot.Len())
	}
	p.recordLocked(l, true)
	return true
}

// restoredAdditions returns the partition's objects as changes.
func (p *partition) restoredAdditions(snapshot *store.Snapshot) delivery.ChangeSlice {
	var changes delivery.ChangeSlice
	if p.isAll() {
		changes = make(delivery.ChangeSlice, 0, snapshot.Len())
		for key, item := range snapshot.All {
			changes = append(changes, store.Change{Key: key, New: item})
		}
		return changes
	}
	for _, key := range keysOf(snapshot, p.prefix()) {
		item, _ := snapshot.Get(key)
		changes = append(changes, store.Change{Key: key, New: item})
	}
	return changes
}

// dropRestored removes the restored objects of the partition from the store.
func (p *partition) dropRestored() {
	i := p.informer
	i.mu.Lock()
	if i.mu.current == p.incarnation && p.confirmLocked() {
		i.mu.unconfirmed.listed, p.resumeVersion = true, ""
		i.removeNamespaceLocked(p.Namespace)
	}
	i.mu.Unlock()
	p.reportRestoration()
}

// blockPause separates two slices of extractBlocks, which take some milliseconds.
const blockPause = 2 * time.Millisecond

// extractBlocks copies objects out of the blocks in which they were persisted, until ctx ends.
func (i *Informer) extractBlocks(ctx context.Context) {
	for next := i.store.ExtractBlocks(0); next != 0; next = i.store.ExtractBlocks(next) {
		if !waitOrDone(ctx, clock.RealClock{}, blockPause) {
			return
		}
	}
}
