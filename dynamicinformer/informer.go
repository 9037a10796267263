package dynamicinformer

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/follow"
	"github.com/crdcache/crdcache/internal/health"
	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/persist"
	"github.com/crdcache/crdcache/internal/requests"
	"github.com/crdcache/crdcache/internal/store"
)

// Informer is the shared informer of one type with some options. Factory.ForResource and Factory.Acquire
// create it, and Factory.Start runs it. Run and RunWithContext are for callers that run it without the
// factory; do not use them together with Start. All methods are safe for concurrent use.
//
// # Contract
//
// The contract is that of client-go's shared informers, as of 0.37 (TestConformance), with additions where
// client-go leaves the behavior undefined or fails. The test in brackets covers its sentence, and the
// sentence before it if that names no test.
//
// Cache. The cache converges to the server's content after any history of lists and events, and so does the
// state that each handler derives from its notifications (TestHistories). The cache may lag behind the
// server. A handler or reader may find it newer than the event at hand, never older
// (TestCacheIsUpdatedBeforeHandlers). Each read sees one moment, so a relist is atomic
// (TestRelistsAreAtomic), and so is a new index (TestAddIndexersWhileWriting). If each namespace has its own
// watch, a relist covers one namespace and appears object by object (TestRelistOfOnePartition). Two reads may
// see different moments, and two informers have no common order. An informer that cannot sync does not delay
// others (TestWaitForSyncSettles). A cache that is known to lag is marked Stale and stays readable
// (TestLossOfContact). Objects are shared: handlers, readers and index functions must not change them
// (TestObjectsAreShared). The old and the new object of an update may share unchanged parts
// (TestUpdatesShareUnchangedParts).
//
// Handlers. One goroutine calls each handler, in the order in which the cache changed
// (TestHandlersSeeEveryChangeInOrder). There is no order between handlers. A slow handler delays neither the
// cache nor other handlers: its queue grows, as its Depth shows (TestSlowHandlerDelaysNoOther). Intermediate
// states of an object may be skipped when a relist replaces events (TestRelistSkipsStates). A handler that is
// added late first receives the existing objects, then every further change (TestHandlersChangeDuringEvents).
// A handler may be removed at any time, even by itself, and is not called again (TestConformance). It may
// call the informer and the factory (TestHandlerCallsFactory). It must not wait for its own return: for
// Shutdown (TestHandlerCannotAwaitShutdown) or its own initial list (TestHandlerCannotAwaitItself).
//
// Notifications. isInInitialList marks the objects of the first list, and existing objects for a late handler
// (TestInitialListIsMarked). A handler has synced when it has returned from the last of these calls
// (TestHandlerIsSyncedAfterTheInitialList). OnDelete receives the final state, or
// cache.DeletedFinalStateUnknown with the last known state if a relist shows that the object is gone. A
// deletion is not delivered if the handler never received the object (TestTombstones). Another UID under the
// same key is another object: a deletion and an addition, never an update (TestHistories). An update with an
// unchanged resource version goes to the handlers that take part in resyncs. At first these are all handlers,
// and after the first check of resync periods the handlers that were due at the last check (TestResync).
// Resync periods are adjusted as in client-go (TestResyncPeriodsAreAdjusted).
//
// Failures. If an index function fails, the error is reported and the object is missing from that index
// (TestFailingIndexFunction). If a transform fails, the error is reported, the cache keeps its object, and
// deletions are still delivered (TestFailingTransform). A panic of a handler ends the process
// (TestPanicCrashesByDefault). With utilruntime.ReallyCrash off, that notification is skipped and the next
// one follows a second later (TestPanickingHandler), and a panic of a transform or an index function becomes
// an error for one object (TestPanickingTransform). Any other panic sets ReasonPanicked, and the informer
// relists after a pause (TestPanickingRound).
//
// Incarnations. With a source of types the informer watches its type from each creation to each deletion, and
// restarts by itself (TestEndsOfIncarnations). Handlers and indexes stay, and an ended incarnation cannot
// write (TestIncarnationsKeepHandlersAndIndexers). When a type is deleted, handlers receive one deletion
// (cache.DeletedFinalStateUnknown) for each delivered object, after all queued events. The cache is emptied
// and HasSynced returns false (TestForget). Two incarnations never interleave, however slow a handler is
// (TestFollowSlowHandlerSeesIncarnationsInOrder). Only a CRD that is deleted, or has another UID or scope,
// causes deletions. If the version is no longer served for another reason, HasSynced returns false, the cache
// keeps the objects, and handlers later receive the difference (TestEndsOfIncarnations). Failed requests
// (TestLossOfContact), an unreachable server (TestUnreachableAffectsTheFactory), a terminating type
// (TestTerminatingStaysSynced), and a new schema or other versions (TestVersionIsKeptWhileServed) do not end
// an incarnation.
//
// End. A stopped informer cannot run again: a new request for its type returns another informer
// (TestStartAgain). A stop deletes nothing, drops queued events, which Depth still counts, and leaves the
// cache readable (TestStopDropsQueuedEvents). It ends every wait for the informer (TestWaitForOneInformer).
// It takes effect immediately, even while the server refuses connections (TestStopWhileRefused), and leaves
// no goroutine (TestMain).
type Informer struct {
	cache.SharedIndexInformer

	gvr          schema.GroupVersionResource
	options      ResourceOptions
	deps         factoryDependencies
	typeRegistry *follow.TypeRegistry // nil: every type is assumed to exist
	// followType reports the type to typeRegistry until ctx ends; nil if Options.Types does.
	followType    func(ctx context.Context, gvr schema.GroupVersionResource)
	health        *health.Health
	objectOptions requests.ObjectOptions
	core          *informer.Informer
	// shard is that of options or SetShardSelector. settings serializes the latter with the start.
	shard    atomic.Pointer[informerShard]
	settings sync.Mutex
	// selections belong to options.Selectors; nil without it.
	selections *follow.Selections
	// retry ends the pauses between the informer's requests.
	retry     *requests.RetrySignal
	runCalled atomic.Bool // RunWithContext was called, or is no longer allowed
	// stopped is closed when all goroutines of the informer have ended and its status is Stopped.
	stopped         chan struct{}
	persister       *persist.Persister
	addIndexesToken chan struct{}
}

// factoryDependencies has the shared parts of the informers of a factory. Its group owns sweeper and
// dictionaries.
type factoryDependencies struct {
	*requests.Server
	cluster string       // name in the group
	logger  *klog.Logger // may be nil
	// namespaces returns the shared list of namespaces.
	namespaces   func() (follow.NamespaceList, error)
	persistence  *persist.SharedState // nil: no persistence
	sweeper      *store.Sweeper
	dictionaries *store.Dictionaries
	// isUnreachable reports whether the cluster is unreachable.
	isUnreachable   func() bool
	liveReadLimiter flowcontrol.RateLimiter
	keepRepeated    bool
}

// reportFailure reports a failed list or watch to the handlers of utilruntime, which log it, as client-go
// does. Relists are normal, and logged only with verbosity 4. Listeners receive the failures from health.
func reportFailure(ctx context.Context, r *cache.Reflector, err error) {
	if reason := requests.ReasonOf(err); reason != status.ReasonNone {
		utilruntime.HandleErrorWithContext(ctx, err, "List or watch failed", "type", r.TypeDescription(),
			"reason", reason)
		return
	}
	klog.FromContext(ctx).V(4).Info("Relisting", "type", r.TypeDescription(), "err", err)
}

// reportOtherFailure is reportFailure for a type with a source of types, except for a type that the server no
// longer serves: the source reports that it was deleted, maybe a little later.
func reportOtherFailure(ctx context.Context, r *cache.Reflector, err error) {
	if requests.ReasonOf(err) != status.ReasonNotFound {
		reportFailure(ctx, r, err)
		return
	}
	klog.FromContext(ctx).V(2).Info("The type is not served", "type", r.TypeDescription(), "err", err)
}

// minimalBackoff is the backoff of a reflector if a requests.Pacer paces its requests.
var minimalBackoff = wait.Backoff{Duration: time.Millisecond, Factor: 1}

func newInformer(deps factoryDependencies, gvr schema.GroupVersionResource, options ResourceOptions,
	typeRegistry *follow.TypeRegistry) (*Informer, error) {
	format, err := options.storeFormat(gvr.GroupResource(), deps.dictionaries)
	if err != nil {
		return nil, err
	}
	if err := options.checkIndexes(); err != nil {
		return nil, fmt.Errorf("%s: %w", formatGVR(gvr), err)
	}
	i := &Informer{gvr: gvr, options: options, deps: deps, typeRegistry: typeRegistry,
		health: health.New(gvr, options.describe(), time.Now)}
	if options.Storage.Mode == StorageNone {
		options.Indexers = cache.Indexers{} // nil would be an index by namespace
	}
	core := informer.New(nil, informer.Options{
		KeepRepeated:      deps.keepRepeated,
		VerifyPeriod:      options.Verify,
		OnVerified:        i.recordVerification,
		ObjectDescription: gvr.String(),
		Format:            format,
		ResyncPeriod:      options.resync(),
		Indexers:          options.Indexers,
		Extractors:        options.extractors(),
		Logger:            deps.logger,
		Backoff:           &minimalBackoff,
		WatchListPageSize: options.PageSize,
		MinWatchTimeout:   options.MinWatchTimeout,
		SelectsObjects:    options.Shard.orNil() != nil,
		Selects:           alternatives(options.AnyOf).filter(),
	})
	if options.Transform != nil {
		if err := core.SetTransform(options.Transform); err != nil {
			return nil, err
		}
	}
	report := reportFailure
	if typeRegistry != nil {
		report = reportOtherFailure
	}
	if err := core.SetWatchErrorHandlerWithContext(report); err != nil {
		return nil, err
	}
	i.SharedIndexInformer, i.core = core, core
	i.objectOptions = requests.ObjectOptions{Packer: format.Packer(),
		Metadata: options.Storage.Mode == StorageMetadata}
	i.retry, i.stopped = requests.NewRetrySignal(), make(chan struct{})
	i.addIndexesToken = make(chan struct{}, 1)
	i.persister = newPersister(i)
	i.setShard(options.Shard)
	i.selections = options.Selectors.newSelections(i)
	return i, nil
}

// GVR returns the informer's type.
func (i *Informer) GVR() schema.GroupVersionResource { return i.gvr }

// Status returns the current status.
func (i *Informer) Status() status.Status {
	status, _ := i.StatusChange()
	return status
}

// StatusChange returns the current status and a channel that is closed when it changes.
func (i *Informer) StatusChange() (status.Status, <-chan struct{}) { return i.health.Snapshot() }

// Informer returns i. It implements informers.GenericInformer of client-go.
func (i *Informer) Informer() cache.SharedIndexInformer { return i }

// Lister reads the cache by label selector or name, in one or all namespaces. It returns shared, read-only
// *unstructured.Unstructured, and decodes only objects that match the selector.
func (i *Informer) Lister() cache.GenericLister { return lister{i} }

// Stopped returns a channel that is closed when the informer has stopped, with the context of Start, the last
// release of its handles, or Shutdown. By then all handlers have returned. The cache stays readable.
func (i *Informer) Stopped() <-chan struct{} { return i.stopped }

// Retry ends the pause after a failed request, so that the informer sends the next request immediately. Call
// it after a change that lets the request succeed, such as a granted permission. It does not wait.
func (i *Informer) Retry() { i.retry.Send() }

// Relist waits for the first list, lists the type again, and returns when the cache has the result. Failed
// lists are repeated. It returns the cause of ctx if ctx ends first, and ErrStopped if the informer stops.
func (i *Informer) Relist(ctx context.Context) error {
	if err := i.core.WaitForSync(ctx); err != nil {
		return err
	}
	return i.core.Relist(ctx)
}

// recordVerification reports the result of a comparison with the server, before a relist repairs the cache.
func (i *Informer) recordVerification(logger klog.Logger, result informer.Verification, err error) {
	i.health.RecordVerification(result != informer.VerifiedEqual, result == informer.VerifiedDiverged, err)
	switch result {
	case informer.VerifiedDiverged:
		logger.Info("Warning: the cache differs from the server, listing the type", "type", formatGVR(i.gvr))
	case informer.VerifiedLasting:
		logger.V(2).Info("The cache still differs from the server after a list", "type", formatGVR(i.gvr))
	}
	if err != nil {
		logger.Info("Warning: cannot compare the cache with the server", "type", formatGVR(i.gvr), "err", err)
	}
}

// Run works like RunWithContext with a stop channel.
func (i *Informer) Run(stopCh <-chan struct{}) { i.RunWithContext(wait.ContextForChannel(stopCh)) }

// RunWithContext runs the informer and updates its status until ctx ends, and returns when all its goroutines
// have ended. With Options.Types it starts and stops with the type. It runs once: further calls log that.
func (i *Informer) RunWithContext(ctx context.Context) {
	i.settings.Lock()
	calledBefore := i.runCalled.Swap(true)
	i.settings.Unlock()
	if calledBefore {
		i.ignoreRun(ctx)
		return
	}
	ctx = i.logging(ctx)
	i.health.Started()
	leaveSweeper := i.deps.sweeper.Join(i.core.Store(), i.deps.isUnreachable)
	leaveShard := i.Shard().register(i)
	leaveSelectors := i.options.Selectors.register(i)
	i.persister.Start(ctx)
	defer func() {
		leaveSweeper()
		i.core.Stop()
		leaveShard()
		leaveSelectors()
		i.persister.Finish()
		<-i.core.Stopped()
		i.health.Stopped(whyEnded(ctx))
		close(i.stopped)
	}()
	if i.followType == nil {
		i.follower().Run(ctx)
		return
	}
	var following sync.WaitGroup
	following.Go(func() { i.followType(ctx, i.gvr) })
	i.follower().Run(ctx)
	following.Wait()
}

// ignoreRun and logging keep the stack frame of a quiet informer small: see docs/design/types.md.
func (i *Informer) ignoreRun(ctx context.Context) {
	klog.FromContext(ctx).Info("An informer runs only once, ignoring another call", "type", formatGVR(i.gvr))
}

func (i *Informer) logging(ctx context.Context) context.Context {
	if i.deps.logger == nil {
		return ctx
	}
	return klog.NewContext(ctx, *i.deps.logger)
}

// follower returns the state machine that runs incarnations of the informer.
func (i *Informer) follower() *follow.Follower {
	selections := i.selections
	if shard := i.shard.Load().follow; shard != nil {
		selections = shard.Selections
	}
	return &follow.Follower{
		RestoredState: i.persister.Restore,
		Type:          i.gvr, Versions: i.options.Versions.versions, Namespaces: i.options.Namespaces.set,
		Selections: selections, SelectsNothing: i.options.matchesNothing(), Types: i.typeRegistry,
		Requests: requester{i}, Cache: i.core, Health: i.health, AllNamespaces: i.deps.namespaces,
	}
}

// stopUnstarted stops an informer that was never run, so that callers do not wait for it.
func (i *Informer) stopUnstarted(cause error) {
	if !i.runCalled.Swap(true) {
		i.core.Stop()
		i.health.Stopped(cause.Error())
		close(i.stopped)
	}
}

// whyEnded returns the message for the end of an informer's context.
func whyEnded(ctx context.Context) string {
	switch cause := context.Cause(ctx); cause {
	case errReleased, errFactoryShut:
		return cause.Error()
	default:
		return fmt.Sprintf("its context has ended: %v", cause)
	}
}

// requester sends the requests of an informer for its follower.
type requester struct{ *Informer }

func (r requester) ListWatch(p follow.PartitionSpec, forbidden func(error)) informer.InlineWatcher {
	return r.deps.ListWatch(r.target(p), r.health.Reporter(p.Incarnation, p.Namespace), r.pacer(p), forbidden)
}

func (r requester) AwaitPermission(ctx context.Context, p follow.PartitionSpec, refusal error) bool {
	return r.deps.AwaitPermission(ctx, r.target(p), r.pacer(p), refusal)
}

func (r requester) target(p follow.PartitionSpec) requests.Target {
	gvr := r.gvr.GroupResource().WithVersion(p.Version)
	target := requests.Target{
		GVR: gvr, Namespace: p.Namespace, Objects: r.objectOptions,
		Tweak: r.options.requestTweaker(gvr), Filter: r.options.Namespaces.set.Filter(),
		Selects: alternatives(r.options.AnyOf).filter(),
		Custom:  p.Custom, NoBookmarks: r.options.WatchBookmarks != nil && !*r.options.WatchBookmarks,
		ListOnly: p.ListOnly,
	}
	switch selection := p.Selection.(type) {
	case *requests.Selection:
		target.Selection = selection
	case *partSelection:
		target.Selects = func(object runtime.Object) bool { return selection.Has(object) }
		target.Tweak = func(options *metav1.ListOptions) {
			selection.tweak(options, *selection.current.Load())
		}
	}
	return target
}

func (r requester) pacer(p follow.PartitionSpec) *requests.Pacer {
	return requests.NewPacer(p.TypeKnown, p.NamespaceIsNew, r.retry)
}
