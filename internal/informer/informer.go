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

// Informer is a cache.SharedIndexInformer: it keeps a local, indexed copy of a collection of objects and tells
// event handlers what changes.
//
// # Contract
//
// It is client-go's, as of 0.37 (TestConformance), and more where client-go leaves something open or lets it go
// wrong. In brackets: the test that pins the sentence.
//
// The cache. After any history of lists and events the cache and its indexes hold the last state of each
// object, and each handler's notifications add up to the same (TestHistories). Nothing is promised about the
// order between objects. Every read is answered from one state: a relist shows as a whole
// (TestReadsSeeWholeRelists), and so does a new index (TestAddIndexersWhileWriting). What is in the cache is
// shared: handlers, readers and index functions must not change it. The old and the new object of an update may
// share what has not changed (TestUpdatesShareWhatIsTheSame).
//
// Handlers. One handler is called by one goroutine, in the order in which the cache changed
// (TestHandlersSeeEveryChangeInOrder); there is no order between handlers. A handler is called after the cache
// and its indexes have changed, and may find them further on (TestCacheBeforeHandlers). A slow handler delays
// neither the cache nor other handlers: its queue grows, which Registration.Depth shows
// (TestSlowHandlerDelaysNobody). A handler that is added late is first told what the cache holds and then
// everything that follows (TestLateHandlerMissesNothing). A handler may be removed at any time, also from
// inside, and is then not called again (TestRemoveFromInside). A handler that panics takes the process with it
// (TestPanicCrashesByDefault) unless utilruntime.ReallyCrash is off, when that notification is skipped and the
// next one comes a second later (TestPanickingHandler).
//
// Notifications. isInInitialList marks the objects of the first list, and those that a late handler finds
// (TestInitialListIsMarked); a handler has synced when it has returned from the last of them
// (TestHandlerIsSyncedAfterTheInitialList). OnDelete gets the final state, or cache.DeletedFinalStateUnknown
// with the last known one when a relist shows that the object is gone; the deletion of an object that no
// handler was told of is not delivered (TestTombstones). Another UID under the same key is another object: it
// is delivered as a deletion (DeletedFinalStateUnknown) and an addition, never as an update (TestAnotherUID).
// An update that leaves the resource version alone goes to the handlers that take part in resyncs, which at
// first are all, and from the first check of resync periods on those that were due at the last (TestResync).
// Resync periods are adjusted as in client-go (TestResyncPeriodsAreAdjusted).
//
// Failures. An index function that fails is reported and its object left out of that index
// (TestFailingIndexFunction). Where a transform fails, it is reported, the cache keeps what it had, and
// deletions are delivered all the same (TestFailingTransform). Where one panics, or an index function does, the process
// ends, unless utilruntime.ReallyCrash is off: then the type is listed again after client-go's pauses
// (TestPanickingTransform).
//
// The end. After the stop no handler is called, no deletions are made up, the cache stays readable, and
// Registration.Depth says how much was thrown away (TestStopThrowsAwayWhatWaits); Flush before the stop waits
// for the delivery instead. Waiters return with ErrStopped (TestStopReleasesWaiters). An informer stops at once
// even while the API server refuses connections (TestStopWhileRefused), and leaves no goroutine (TestMain).
//
// Generations. Handlers, indexers and content stay from one generation to the next, and a generation that has
// ended cannot write any more (TestGenerationsKeepHandlersAndIndexers). Forget delivers what is pending,
// then one OnDelete(DeletedFinalStateUnknown) for each object that was shown, and the next generation starts with an
// initial list (TestForget).
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

	// mu orders everything that changes the store together with what the handlers are told, so that a handler
	// that joins or leaves sees a seamless history. No callback of a user runs under it.
	mu struct {
		sync.Mutex
		state    State
		handlers []*Registration
		// current is the generation that may write, or nil; generations counts them.
		current     *generation
		generations int
		// resyncCheck is how often the reflector asks whether a handler is due for a resync.
		resyncCheck  time.Duration
		transform    cache.TransformFunc
		watchFailure cache.WatchErrorHandlerWithContext
	}
}

var _ cache.SharedIndexInformer = (*Informer)(nil)

// New returns an Informer of what lw lists and watches. lw may be nil when only RunParts and RunChangingParts are used.
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

// LastSyncResourceVersion is the resource version that the reflector has seen last; empty before the first list.
// With several parts it is that of the part that was heard of last.
func (i *Informer) LastSyncResourceVersion() string {
	if r := i.reflector.Load(); r != nil {
		return r.LastSyncResourceVersion()
	}
	return i.store.Snapshot().ResourceVersion()
}

// SetTransform sets what is done to each object before it is stored. It fails with ErrStarted once the informer
// has started. Objects of a watch-list pass through it twice, so it must be idempotent. An object that it fails
// on is reported and what the cache holds for it stays as it was.
func (i *Informer) SetTransform(transform cache.TransformFunc) error {
	return i.beforeStart(func() { i.mu.transform = transform })
}

// SetWatchErrorHandler is SetWatchErrorHandlerWithContext for a handler without a context.
func (i *Informer) SetWatchErrorHandler(handler cache.WatchErrorHandler) error {
	return i.SetWatchErrorHandlerWithContext(func(_ context.Context, r *cache.Reflector, err error) {
		handler(r, err)
	})
}

// SetWatchErrorHandlerWithContext sets what is called when a list or watch ends with an error; the default logs
// it. It fails with ErrStarted once the informer has started.
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

// AddIndexers adds indexes, before or after the start. Objects that are there already are indexed while readers
// and the reflector go on; then all new indexes appear at once. It fails when a name is taken or the informer
// has stopped.
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
