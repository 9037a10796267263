package informer

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
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

// restoration confirms the restored objects of a partition. They are current if the server has not advanced
// since they were persisted, or after a watch from their version has delivered an event or bookmark of the
// server's version. An accepted watch is not sufficient, because its events may still arrive.
type restoration struct {
	*partition
	lw InlineWatcher
	// version is the resource version of the stored objects, goal the version at which they are current.
	version, goal string
}

// maxConfirmationWatches is the number of watches that may end unconfirmed before everything is listed.
const maxConfirmationWatches = 4

// resume confirms the restored objects of a partition, which are at version, with the server. It returns the
// resource version to watch from, or "" if the partition is to be listed.
func (p *partition) resume(ctx context.Context, version string) string {
	defer utilruntime.HandleCrashWithContext(ctx)
	r := &restoration{partition: p, lw: p.ListerWatcher, version: version}
	reason, err := r.run(ctx)
	switch {
	case err != nil:
		return ""
	case reason != "":
		klog.FromContext(ctx).Info("Cannot confirm restored objects, listing them", "reflector",
			p.informer.options.ObjectDescription, "why", reason)
		return ""
	}
	return r.version
}

// run returns the reason why everything has to be listed; it is empty if the objects are confirmed. The error
// is that of ctx or ErrIncarnationOver.
func (r *restoration) run(ctx context.Context) (reason string, err error) {
	if r.goal, err = r.lw.CurrentVersion(ctx); err != nil {
		return "", err
	}
	if r.State.Load(ctx, true) == nil {
		r.dropRestored()
		return "the objects belong to another cluster or type", nil
	}
	for range maxConfirmationWatches {
		order, err := naming.CompareVersions(r.version, r.goal)
		switch {
		case err != nil:
			return err.Error(), nil
		case order > 0:
			return fmt.Sprintf("the server is at version %s, which is before %s", r.goal, r.version), nil
		case order == 0:
			return "", r.deliverConfirmed(ctx)
		}
		if reason, err := r.watch(ctx); reason != "" || err != nil || !r.isBehind() {
			return reason, err
		}
	}
	return "no watch has reached the version of the server", nil
}

func (r *restoration) isBehind() bool {
	order, err := naming.CompareVersions(r.version, r.goal)
	return err != nil || order < 0
}

// watch applies the events of a watch until the objects are current, and confirms them, or until the watch
// ends. It returns the reason if everything has to be listed.
func (r *restoration) watch(ctx context.Context) (reason string, err error) {
	options := &metav1.ListOptions{ResourceVersion: r.version, TimeoutSeconds: &catchUpSeconds,
		AllowWatchBookmarks: true}
	refusal := r.lw.WatchInline(ctx, options, func(event watch.Event) bool {
		reason, err = r.apply(event)
		return reason == "" && err == nil && r.isBehind()
	})
	switch {
	case reason != "" || err != nil:
		return reason, err
	case !r.isBehind():
		return "", r.deliverConfirmed(ctx)
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case refusal == nil:
		return "", nil
	case apierrors.IsTooManyRequests(refusal), apierrors.IsServiceUnavailable(refusal),
		apierrors.IsServerTimeout(refusal): // listing everything would not be less work for the server
		waitOrDone(ctx, clock.RealClock{}, rejectedWatchPause)
		return "", context.Cause(ctx)
	}
	return refusal.Error(), nil
}

// rejectedWatchPause follows a watch that the server refuses for now. It is a variable for the sake of tests.
var rejectedWatchPause = time.Second

// apply applies an event. It returns the reason if it cannot.
func (r *restoration) apply(event watch.Event) (reason string, err error) {
	if event.Type == watch.Error {
		return apierrors.FromObject(event.Object).Error(), nil
	}
	object, err := meta.Accessor(event.Object)
	if err != nil || isTable(event.Object) {
		return "an event has no object", nil
	}
	version := object.GetResourceVersion()
	if order, err := naming.CompareVersions(version, r.version); err != nil {
		return err.Error(), nil
	} else if order < 0 {
		return fmt.Sprintf("version %s follows version %s", version, r.version), nil
	}
	err = r.applyEvent(event, version)
	r.version = version
	return "", err
}

// deliverConfirmed delivers the objects of the partition to the handlers as its first list.
func (r *restoration) deliverConfirmed(ctx context.Context) error {
	if err := r.confirmStored(r.version); err != nil {
		return err
	}
	r.reportRestoration()
	r.callOnAllListed()
	r.informer.workers.Go(func() { r.informer.extractBlocks(ctx) }) // ended by ctx, with the incarnation
	return nil
}

func (p *partition) confirmStored(version string) error {
	i := p.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != p.incarnation {
		return ErrIncarnationOver
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
	return nil
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
