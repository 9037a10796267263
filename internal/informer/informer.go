package informer

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/crdcache/crdcache/internal/store"
)

// Informer is a cache.SharedIndexInformer: it keeps a local, indexed copy of a collection of objects and
// tells event handlers what changes.
//
// What it promises is written down once, where users see it: in the comment on Informer of package
// dynamicinformer. Beyond that, its owner runs generations (RunParts and its like), each of which feeds the
// cache until its context ends, decides with Forget that what the last one showed is gone, and ends
// everything with Stop, after which waiters return with ErrStopped (TestStopReleasesWaiters).
type Informer struct {
	options Options
	lw      cache.ListerWatcher
	store   *store.Store
	clock   clock.WithTicker
	// mutations finds handlers that change cached objects, where KUBE_CACHE_MUTATION_DETECTOR asks for it.
	mutations cache.MutationDetector
	// synced is replaced by Forget.
	synced atomic.Pointer[syncPoint]
	// reflector is the latest one.
	reflector atomic.Pointer[cache.Reflector]
	events    eventCounts
	// stopping is closed by Stop, stopped when nothing runs any more.
	stopping, stopped chan struct{}
	// workers counts handlers' goroutines and the running generation.
	workers sync.WaitGroup

	// joining is held by handlers that join or leave, before mu. So at most one of them is ahead of an event.
	joining sync.Mutex

	// mu orders everything that changes the store together with what the handlers are told, so that a handler
	// that joins or leaves gets a history without gaps. No callback of a user runs under it.
	mu struct {
		sync.Mutex
		state    State
		handlers []*Registration
		// current is the generation that may write, or nil; generations counts them.
		current     *generation
		generations int
		// resyncCheck is how often the reflector asks whether a handler is due for a resync.
		resyncCheck time.Duration
		transform   cache.TransformFunc
		// unconfirmed is what the store shows of an earlier process, of which no handler has been told.
		unconfirmed unconfirmed
		// wholeOf is the Past of the part whose stream has brought all that the store shows, up to its
		// resource version; nil where the store shows anything else.
		wholeOf Past
		// parts are those of the running generation, if it has several.
		parts        []*part
		watchFailure cache.WatchErrorHandlerWithContext
		log          changeLog
	}
}

var _ cache.SharedIndexInformer = (*Informer)(nil)

// New returns an Informer of what lw lists and watches. lw may be nil when only RunParts and RunChangingParts
// are used.
func New(lw cache.ListerWatcher, options Options) *Informer {
	options = options.withDefaults()
	i := &Informer{
		options: options,
		lw:      lw,
		store: store.New(store.Options{
			Indexers:   options.Indexers,
			Extractors: options.Extractors,
			Form:       options.Form,
			Report:     reportFailures(*options.Logger, options.ObjectDescription),
		}),
		clock:     options.Clock,
		mutations: cache.NewCacheMutationDetector(fmt.Sprintf("%T", options.ExampleObject)),
		stopping:  make(chan struct{}),
		stopped:   make(chan struct{}),
	}
	i.synced.Store(newSyncPoint())
	i.mu.resyncCheck = options.ResyncPeriod
	return i
}

// State tells where the informer is in its life.
func (i *Informer) State() State {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.mu.state
}

// Generation counts the generations that have begun; zero before the first.
func (i *Informer) Generation() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.mu.generations
}

// IsStopped reports whether the informer has stopped for good.
func (i *Informer) IsStopped() bool { return i.State() == StateStopped }

// Stopped is closed when the informer has stopped, every handler call has returned and no goroutine is left.
func (i *Informer) Stopped() <-chan struct{} { return i.stopped }

// HasSynced reports whether the store has stored a first full list. It turns false again with Forget.
func (i *Informer) HasSynced() bool { return i.synced.Load().reached() }

// HasSyncedChecker is HasSynced as a channel. As in client-go, the channel stays open when the informer stops
// before it has synced; WaitForSync returns in that case.
func (i *Informer) HasSyncedChecker() cache.DoneChecker {
	return checker{name: i.syncName, current: &i.synced}
}

func (i *Informer) syncName() string { return "informer of " + i.options.ObjectDescription }

// WaitForSync waits until the store has stored a first full list. It returns ErrStopped when the informer
// stopped before that, or the context's cause.
func (i *Informer) WaitForSync(ctx context.Context) error {
	synced := i.synced.Load()
	select {
	case <-synced.done:
		return nil
	default:
	}
	select {
	case <-synced.done:
		return nil
	case <-i.stopping:
		if synced.reached() {
			return nil
		}
		return ErrStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// LastSyncResourceVersion is the resource version that the reflector has seen last; empty before the first
// list. With several parts it is that of the store.
func (i *Informer) LastSyncResourceVersion() string {
	if r := i.reflector.Load(); r != nil {
		return r.LastSyncResourceVersion()
	}
	return i.storeVersion()
}

// storeVersion returns the resource version up to which the store has everything: the least of all parts. It
// is empty until each has listed, and after a direct write to a store of several parts.
func (i *Informer) storeVersion() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.mu.parts) == 0 {
		return i.store.Snapshot().ResourceVersion()
	}
	least := i.mu.parts[0].at
	for _, p := range i.mu.parts {
		if p.at == "" || older(p.at, least) {
			least = p.at
		}
		if least == "" {
			break
		}
	}
	return least
}

// SetTransform sets what is done to each object before it is stored. It fails with ErrStarted once the
// informer has started. Objects of a watch-list pass through it twice, so it must be idempotent. An object
// that it fails on is reported and what the cache holds for it stays as it was.
func (i *Informer) SetTransform(transform cache.TransformFunc) error {
	return i.beforeStart(func() { i.mu.transform = transform })
}

// SetWatchErrorHandler is SetWatchErrorHandlerWithContext for a handler without a context.
func (i *Informer) SetWatchErrorHandler(handler cache.WatchErrorHandler) error {
	return i.SetWatchErrorHandlerWithContext(func(_ context.Context, r *cache.Reflector, err error) {
		handler(r, err)
	})
}

// SetWatchErrorHandlerWithContext sets what is called when a list or watch ends with an error; the default
// logs it. It fails with ErrStarted once the informer has started.
func (i *Informer) SetWatchErrorHandlerWithContext(handler cache.WatchErrorHandlerWithContext) error {
	return i.beforeStart(func() { i.mu.watchFailure = handler })
}

func (i *Informer) beforeStart(set func()) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.state != StateFresh {
		return &refusal{text: "informer has already started", cause: ErrStarted}
	}
	set()
	return nil
}

// GetStore returns GetIndexer's view.
func (i *Informer) GetStore() cache.Store { return i.GetIndexer() }

// GetIndexer returns the local cache with its indexes. Writing to it changes the cache without telling any
// handler, and the next event or list for the key overwrites that.
func (i *Informer) GetIndexer() cache.Indexer { return indexer{informer: i} }

// AddIndexers adds indexes, before or after the start. Objects that are there already are indexed while
// readers and the reflector go on; then all new indexes appear at once. It fails when a name is taken or the
// informer has stopped.
func (i *Informer) AddIndexers(indexers cache.Indexers) error {
	if i.IsStopped() {
		return &refusal{text: "indexer was not added because it has stopped already", cause: ErrStopped}
	}
	return i.store.AddIndexers(indexers)
}

// GetController returns a view that can be asked but not run.
func (i *Informer) GetController() cache.Controller { return controller{i} }

// controller is the part of an Informer that cache.Controller shows. Only the informer's owner runs it.
type controller struct{ *Informer }

// Run implements cache.Controller and does nothing.
func (controller) Run(<-chan struct{}) {}

// RunWithContext implements cache.Controller and does nothing.
func (controller) RunWithContext(context.Context) {}

// AddExtractor adds the indexes of an extractor as AddIndexers adds index functions. Those whose names are
// given it replaces, at the moment when the new ones are complete.
func (i *Informer) AddExtractor(e store.Extractor, replaced ...string) error {
	if i.IsStopped() {
		return &refusal{text: "indexes were not added because it has stopped already", cause: ErrStopped}
	}
	return i.store.AddExtractor(e, replaced...)
}

// RemoveIndexes removes indexes by name, whoever added them; names that there are none of do nothing.
func (i *Informer) RemoveIndexes(names ...string) { i.store.RemoveIndexes(names...) }

// Store returns the store, for what is done to it in the background.
func (i *Informer) Store() *store.Store { return i.store }

// Snapshot returns the present content, which it never changes.
func (i *Informer) Snapshot() *store.Snapshot { return i.store.Snapshot() }
