package informer

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/informer/delivery"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/store"
)

// Informer is a cache.SharedIndexInformer: a local, indexed copy of a collection of objects.
//
// Its contract is in the comment on Informer of package dynamicinformer. In addition, its owner can run it
// several times: each call of RunPartition or RunPartitions is an incarnation, which lasts until its context
// ends. Forget removes the objects of the last incarnation. Stop ends the informer; waiters then return
// ErrStopped (TestStopReleasesWaiters).
type Informer struct {
	foreignInformer //lint:ignore U1000 nil; it has the methods that newer releases add
	options         Options
	lw              InlineWatcher // of Run; may be nil
	store           *store.Store
	indexer         indexer
	clock           clock.WithTicker
	// selectsObjects is Options.SelectsObjects, until SelectObjects changes it.
	selectsObjects atomic.Bool
	// metricsID is the identity of ReportMetrics.
	metricsID cache.InformerNameAndResource
	// mutations finds handlers that change cached objects, if KUBE_CACHE_MUTATION_DETECTOR is set.
	mutations cache.MutationDetector
	// synced is reached after the first list. Forget replaces it.
	synced atomic.Pointer[delivery.SyncPoint]
	// delivery has the properties that handlers need.
	delivery delivery.Config
	// stopping is closed by Stop, stopped when all goroutines have ended.
	stopping, stopped chan struct{}
	// workers counts handlers' goroutines and the running incarnation.
	workers sync.WaitGroup

	// registering is locked before mu to add or remove a handler: at most one of these delays an event.
	registering sync.Mutex

	// mu makes each change of the store and its notifications atomic, so that new handlers miss nothing. No
	// callback of a user runs under it.
	mu struct {
		sync.Mutex
		state    State
		handlers delivery.Handlers
		// current is the incarnation that can write, or nil.
		current     *incarnation
		transform   cache.TransformFunc
		unconfirmed unconfirmedRestore
		// partitions are the partitions of the latest incarnation. Without any, no object is selected.
		partitions   []*partition
		watchFailure cache.WatchErrorHandlerWithContext
		log          changeLog
		waits        versionWaits
		// streams are the running inline watches. streamsChanged, if not nil, is closed when one
		// is added or the partitions change.
		streams        []*inlineWatch
		streamsChanged chan struct{}
	}
}

// New returns an Informer of the objects of lw, which can be nil unless Run or RunWithContext is called.
func New(lw InlineWatcher, options Options) *Informer {
	options = options.withDefaults()
	i := &Informer{
		options: options,
		lw:      lw,
		store: store.New(store.Options{
			Indexers:   options.Indexers,
			Extractors: options.Extractors,
			Format:     options.Format,
			Report:     reportFailures(*options.Logger, options.ObjectDescription),
		}),
		clock:     options.Clock,
		mutations: cache.NewCacheMutationDetector(options.ObjectDescription),
		stopping:  make(chan struct{}),
		stopped:   make(chan struct{}),
	}
	i.synced.Store(delivery.NewSyncPoint())
	i.indexer.informer = i
	i.delivery = delivery.Config{Format: i.store.Format(), Clock: i.clock, Logger: options.Logger,
		ResyncPeriod: options.ResyncPeriod, InformerName: i.syncName, Stopping: i.stopping,
		Workers: &i.workers}
	i.selectsObjects.Store(options.SelectsObjects)
	i.mu.handlers.Resyncs.Period = options.ResyncPeriod
	return i
}

// State returns the state in the life cycle.
func (i *Informer) State() State {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.mu.state
}

// IsStopped reports whether Stop was called.
func (i *Informer) IsStopped() bool { return i.State() == StateStopped }

// Stopped is closed when the informer has stopped and all its goroutines have ended.
func (i *Informer) Stopped() <-chan struct{} { return i.stopped }

// HasSynced reports whether the first complete list has been stored since the last call of Forget.
func (i *Informer) HasSynced() bool { return i.synced.Load().Reached() }

// Synced returns a channel that is closed when HasSynced becomes true. Forget replaces the channel. As in
// client-go, it stays open if the informer stops before; WaitForSync returns in that case.
func (i *Informer) Synced() <-chan struct{} { return i.synced.Load().Done() }

// HasSyncedChecker returns HasSynced as a channel.
func (i *Informer) HasSyncedChecker() cache.DoneChecker {
	return delivery.Checker{NameOf: i.syncName, Current: &i.synced}
}

func (i *Informer) syncName() string { return "informer of " + i.options.ObjectDescription }

// WaitForSync waits for HasSynced. It returns ErrStopped if the informer stops, or the context's cause.
func (i *Informer) WaitForSync(ctx context.Context) error {
	ended, err := i.synced.Load().Wait(ctx, i.stopping)
	if ended {
		return ErrStopped
	}
	return err
}

// LastSyncResourceVersion returns the resource version up to which the store is complete: the least of all
// partitions. It is empty until all have listed, and after a user's write to several.
func (i *Informer) LastSyncResourceVersion() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.mu.partitions) == 0 || i.mu.partitions[0].isAll() {
		return i.store.Snapshot().ResourceVersion()
	}
	least := i.mu.partitions[0].resumeVersion
	for _, p := range i.mu.partitions {
		if p.resumeVersion == "" {
			return ""
		}
		if naming.IsOlder(p.resumeVersion, least) {
			least = p.resumeVersion
		}
	}
	return least
}

// SetTransform sets a function that transforms each object before it is stored. It must be idempotent,
// because the objects of a watch-list pass through it twice. If it fails, the error is reported and the
// stored object stays unchanged. SetTransform fails with ErrStarted after the start.
func (i *Informer) SetTransform(transform cache.TransformFunc) error {
	return i.configure(func() { i.mu.transform = transform })
}

// SetWatchErrorHandler works like SetWatchErrorHandlerWithContext for a handler without a context.
func (i *Informer) SetWatchErrorHandler(handler cache.WatchErrorHandler) error {
	return i.SetWatchErrorHandlerWithContext(func(_ context.Context, r *cache.Reflector, err error) {
		handler(r, err)
	})
}

// SetWatchErrorHandlerWithContext sets the handler of errors of lists and watches. The default logs them. It
// fails with ErrStarted after the start.
func (i *Informer) SetWatchErrorHandlerWithContext(handler cache.WatchErrorHandlerWithContext) error {
	return i.configure(func() { i.mu.watchFailure = handler })
}

// SetShardSelector fails: partitions have the shards of an informer.
func (i *Informer) SetShardSelector(sharding.Selector) error {
	return errors.New("set a shard selector: the informer has none; set one on an informer of a dynamicinformer.Factory")
}

// SelectObjects sets Options.SelectsObjects before the start.
func (i *Informer) SelectObjects(selects bool) { i.selectsObjects.Store(selects) }

func (i *Informer) configure(set func()) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.state != StateNew {
		return &explainedError{text: "informer has already started", cause: ErrStarted}
	}
	set()
	return nil
}

// GetStore returns the cache, as GetIndexer does.
func (i *Informer) GetStore() cache.Store { return i.GetIndexer() }

// GetIndexer returns the cache with its indexes. Handlers are not notified of writes to it, and the next
// event or list overwrites these.
func (i *Informer) GetIndexer() cache.Indexer { return &i.indexer }

// AddIndexers adds indexes, before or after the start. It indexes the stored objects without blocking readers
// or the reflector; then all new indexes appear atomically. It fails for a taken name and after the stop.
func (i *Informer) AddIndexers(indexers cache.Indexers) error {
	if i.IsStopped() {
		return &explainedError{text: "indexer was not added because it has stopped already", cause: ErrStopped}
	}
	return i.store.AddIndexers(indexers)
}

// GetController returns a controller that cannot be run.
func (i *Informer) GetController() cache.Controller { return controller{i} }

// controller implements cache.Controller. Only the owner of the Informer runs it.
type controller struct{ *Informer }

func (controller) Run(<-chan struct{})            {}
func (controller) RunWithContext(context.Context) {}

// AddExtractor adds the indexes of an extractor, like AddIndexers. It atomically replaces the named indexes
// when the new ones are complete.
func (i *Informer) AddExtractor(e store.Extractor, replaced ...string) error {
	if i.IsStopped() {
		return &explainedError{text: "indexes were not added because it has stopped already", cause: ErrStopped}
	}
	return i.store.AddExtractor(e, replaced...)
}

// RemoveIndexes removes indexes by name. It ignores unknown names.
func (i *Informer) RemoveIndexes(names ...string) { i.store.RemoveIndexes(names...) }

// Store returns the store, for background work.
func (i *Informer) Store() *store.Store { return i.store }

// Snapshot returns the current content. It is immutable.
func (i *Informer) Snapshot() *store.Snapshot { return i.store.Snapshot() }

// Events returns the numbers of events since the informer was created.
func (i *Informer) Events() status.EventStats {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.mu.handlers.Events
}
