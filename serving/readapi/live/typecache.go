package live

import (
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/serving/readapi"
)

// typeCache serves a type from an informer.
type typeCache struct {
	server   *Server
	informer *dynamicinformer.Informer
	gvr      schema.GroupVersionResource
	// view has the indexes. It is replaced when they change.
	view          atomic.Pointer[bind.View]
	gapCheckToken chan struct{} // contains a token while checkGap asks the API server

	// ended is closed when the type is no longer served from the informer.
	ended chan struct{}
	// keptSince is the version until which a cache with other fields served the type. Clients cannot continue
	// from before: their objects have other fields.
	keptSince uint64

	mu struct {
		sync.Mutex
		// typ describes how the type is served; nil while unknown. It lacks the selectable fields that the
		// cache drops.
		typ               *readapi.Type
		droppedSelectable []string
		spec              string // of the CustomResourceDefinition
		// lifetime ends when typ changes. indexLifetime also ends when an index is changed or removed, at
		// the version indexedSince. Both are nil while typ is nil.
		lifetime, indexLifetime *lifetime
		indexedSince            uint64
		// cachedList is the latest sorted list.
		cachedList weak.Pointer[sortedObjects]
		// confirmed is the version up to which a freshness check found the cache complete. It can be later
		// than the last event of the watch. It applies to the given epoch, from fromVersion on.
		confirmed struct {
			fromVersion, version uint64
			epoch                int
		}
		gap historyGap
		// gapWaiters counts the clients that wait in awaitGapCheck, by version.
		gapWaiters map[uint64]int
	}
}

// lifetime is the time during which clients can continue their watches with the same result.
type lifetime struct {
	ended chan struct{}
	// expired is set before ended is closed if clients have to list again.
	expired atomic.Bool
}

func newLifetime() *lifetime { return &lifetime{ended: make(chan struct{})} }

// stop stops serving the type from the informer, and ends the watches. expire makes clients list again. It is
// idempotent.
func (t *typeCache) stop(expire bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.hasEnded() {
		close(t.ended)
	}
	if expire && t.mu.typ != nil {
		t.mu.lifetime.expired.Store(true)
		t.mu.indexLifetime.expired.Store(true)
	}
	t.resetDefinitionLocked()
}

// setView replaces the indexes. If one is changed or removed, clients that use indexes have to list again:
// other objects can match.
func (t *typeCache) setView(view *bind.View) {
	previous := t.view.Load()
	if previous == view {
		return
	}
	version := t.completeUntil(t.informer.History())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.view.Store(view)
	if !slices.ContainsFunc(previous.Declared(), func(old *indexers.Index) bool {
		return !slices.ContainsFunc(view.Declared(), old.Same)
	}) {
		return
	}
	t.mu.indexedSince = version
	if t.mu.typ != nil {
		t.mu.indexLifetime.expired.Store(true)
		close(t.mu.indexLifetime.ended)
		t.mu.indexLifetime = newLifetime()
	}
}

func (t *typeCache) hasEnded() bool {
	select {
	case <-t.ended:
		return true
	default:
		return false
	}
}

// endWithInformer ends the type when the informer stops, because its cache is then no longer updated.
func (t *typeCache) endWithInformer() {
	select {
	case <-t.informer.Stopped():
		t.stop(false)
	case <-t.ended:
	}
}

// resetDefinition drops the definition of the type, and ends the watches.
func (t *typeCache) resetDefinition() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.resetDefinitionLocked()
}

// resetIfChanged is resetDefinition unless the definition is unchanged.
func (t *typeCache) resetIfChanged(spec string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.spec != spec {
		t.resetDefinitionLocked()
	}
}

func (t *typeCache) resetDefinitionLocked() {
	if t.mu.typ != nil {
		close(t.mu.lifetime.ended)
		close(t.mu.indexLifetime.ended)
		t.mu.typ, t.mu.lifetime, t.mu.indexLifetime = nil, nil, nil
	}
}

// collection returns the current objects, or nil if the cache cannot serve them.
func (t *typeCache) collection() *collection {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hasEnded() {
		return nil
	}
	if t.mu.typ == nil {
		typ, spec, ok := t.server.typeOf(t.gvr)
		if !ok {
			return nil
		}
		t.mu.spec = spec
		t.mu.typ, t.mu.droppedSelectable = withoutDropped(typ, t.informer)
		t.mu.lifetime, t.mu.indexLifetime = newLifetime(), newLifetime()
	}
	h := t.informer.History()
	if !h.Synced {
		return nil
	}
	return &collection{typeCache: t, view: t.view.Load(), typ: *t.mu.typ, epoch: h.Epoch,
		droppedSelectable: t.mu.droppedSelectable,
		lifetime:          t.mu.lifetime, indexLifetime: t.mu.indexLifetime, indexedSince: t.mu.indexedSince}
}

func (t *typeCache) Snapshot() query.Snapshot {
	for view := t.view.Load(); ; {
		snapshot := view.Snapshot()
		latest := t.view.Load()
		if latest == view { // otherwise the snapshot can lack indexes of the view
			return snapshot
		}
		view = latest
	}
}

// completeUntil returns the version up to which the cache is known to be complete.
func (t *typeCache) completeUntil(history dynamicinformer.History) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.mu.confirmed; c.epoch == history.Epoch && c.fromVersion <= history.ResourceVersion {
		return max(history.ResourceVersion, c.version)
	}
	return history.ResourceVersion
}

// recordConfirmed records that a history is complete up to a version.
func (t *typeCache) recordConfirmed(history dynamicinformer.History, version uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := &t.mu.confirmed; c.epoch < history.Epoch || c.epoch == history.Epoch && c.version < version {
		c.fromVersion, c.version, c.epoch = history.ResourceVersion, version, history.Epoch
	}
}
