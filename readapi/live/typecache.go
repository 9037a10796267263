package live

import (
	"sync"
	"sync/atomic"
	"weak"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/readapi"
)

// typeCache serves a type from an informer.
type typeCache struct {
	server   *Server
	informer *dynamicinformer.Informer
	gvr      schema.GroupVersionResource
	// view has the indexes. It is replaced when they change.
	view          atomic.Pointer[bind.View]
	checks        coalescedChecks
	gapCheckToken chan struct{} // contains a token while checkGap asks the API server

	// ended is closed when the type is no longer served from the informer.
	ended chan struct{}

	mu struct {
		sync.Mutex
		// typ describes how the type is served; nil while unknown. typeChanged is closed when typ changes.
		typ         *readapi.Type
		spec        string // of the CustomResourceDefinition
		typeChanged chan struct{}
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

// stop stops serving the type from the informer, and ends the watches. It is idempotent.
func (t *typeCache) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.hasEnded() {
		close(t.ended)
	}
	t.resetDefinitionLocked()
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
		t.stop()
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
		close(t.mu.typeChanged)
		t.mu.typ, t.mu.typeChanged = nil, nil
	}
}

// currentType returns how the type is served, and a channel that is closed when that changes. It returns
// false while that is unknown.
func (t *typeCache) currentType() (readapi.Type, <-chan struct{}, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hasEnded() {
		return readapi.Type{}, nil, false
	}
	if t.mu.typ == nil {
		typ, spec, ok := t.server.typeOf(t.gvr)
		if !ok {
			return typ, nil, false
		}
		t.mu.typ, t.mu.spec, t.mu.typeChanged = &typ, spec, make(chan struct{})
	}
	return *t.mu.typ, t.mu.typeChanged, true
}

// collection returns the current objects, or nil if the cache cannot serve them.
func (t *typeCache) collection() *collection {
	typ, ended, ok := t.currentType()
	if !ok {
		return nil
	}
	h := t.informer.History()
	if !h.Synced {
		return nil
	}
	return &collection{typeCache: t, view: t.view.Load(), typ: typ, typeChanged: ended, epoch: h.Epoch}
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
