package dynamicinformer

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/follow"
	"github.com/crdcache/crdcache/internal/health"
	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/requests"
	"github.com/crdcache/crdcache/internal/store"
)

// Informer is the shared informer of one type, or of a view of it. It is made by Factory.ForResource or
// Factory.Acquire and run by Factory.Start; Run and RunWithContext are for callers that run it without the
// factory, and must not be mixed with Start. All methods are safe for concurrent use.
//
// # Contract
//
// It is that of client-go's shared informers, as of 0.37 (TestConformance), and more where client-go leaves
// something open or lets it go wrong. In brackets: the test that pins the sentence.
//
// The cache. It comes to hold what the server has, after any history of lists and events, and each handler's
// notifications add up to the same (TestHistories). It may be behind at any time: a handler or reader may
// find it further on than the event at hand, never further back (TestCacheBeforeHandlers). A read is answered
// from one moment, so that a relist shows as a whole (TestReadsSeeWholeRelists), and so does a new index
// (TestAddIndexersWhileWriting). Where several namespaces are read one by one, a relist is of one of them and
// shows object by object (TestRelistOfOnePart). Two reads may be from different moments, and two informers
// always are: nothing is promised about the order of what they show, and one that cannot go on does not hold
// up another (TestWaitForSyncSettles). What is known to be behind is marked stale and stays readable
// (TestLossOfContact). Objects are shared with everybody: neither handlers nor readers nor index functions
// may change them (TestObjectsAreShared). The old and the new object of an update may share what has not
// changed (TestUpdatesShareWhatIsTheSame).
//
// Handlers. Each is called by one goroutine, in the order in which the cache changed
// (TestHandlersSeeEveryChangeInOrder). There is no order between handlers, and a slow one delays neither the
// cache nor the others: its queue grows, which its Depth shows (TestSlowHandlerDelaysNobody). Intermediate
// states of an object may be skipped where a relist takes the place of events (TestRelistSkipsStates). A late
// handler is first told what there is, and then everything that follows (TestLateHandlerMissesNothing). A
// handler may be removed at any time, also from inside, and is then not called again (TestRemoveFromInside).
// It may call back into the informer and the factory (TestHandlerCallsFactory), but must not wait for what
// takes its own return: Shutdown (TestHandlerCannotAwaitShutdown), or its own first list
// (TestHandlerCannotAwaitItself).
//
// Notifications. isInInitialList marks the objects of the first list, and those that a late handler finds
// (TestInitialListIsMarked); a handler has synced when it has returned from the last of them
// (TestHandlerIsSyncedAfterTheInitialList). OnDelete gets the final state, or cache.DeletedFinalStateUnknown
// with the last known one when a relist shows that the object is gone; the deletion of an object that no
// handler was told of is not delivered (TestTombstones). Another UID under the same key is another object: a
// deletion and an addition, never an update (TestAnotherUID). An update that leaves the resource version
// alone goes to the handlers that take part in resyncs, which at first are all, and from the first check of
// resync periods on those that were due at the last (TestResync). Resync periods are adjusted as in client-go
// (TestResyncPeriodsAreAdjusted).
//
// Failures. An index function that fails is reported and its object left out of that index
// (TestFailingIndexFunction). Where a transform fails, it is reported, the cache keeps what it had, and
// deletions are delivered all the same (TestFailingTransform). A panic of a handler ends the process
// (TestPanicCrashesByDefault) unless utilruntime.ReallyCrash is off, when that notification is skipped and
// the next one comes a second later (TestPanickingHandler). Of a transform or an index function, a panic is
// then an error that concerns one object (TestPanickingTransform). Any other panic shows as ReasonPanicked,
// and the type is listed again after a pause (TestPanickingRound).
//
// Generations. With Options.Types the informer follows its type from each coming to each going, and starts
// again by itself (TestFollowTypeThatComesGoesAndReturns). Handlers and indexes stay, and what has ended
// cannot write any more (TestGenerationsKeepHandlersAndIndexers). A type that goes is told as one deletion
// (cache.DeletedFinalStateUnknown) of each object that was told of, behind what is still queued; the cache is
// emptied and HasSynced is false (TestForget). Two generations never interleave, however slow a handler is
// (TestFollowSlowHandlerSeesGenerationsInOrder). A new UID of the type itself is another generation
// (TestFollowReplacedType). Only what is known to be gone is told as deleted: failing requests
// (TestLossOfContact), a server that is away (TestUnreachableIsOfTheFactory), a type that is terminating
// (TestTerminatingStaysSynced), or one whose schema or other versions change (TestFollowKeepsGeneration) end
// nothing.
//
// The end. An informer that has stopped does not run again: asking for its type gives another one
// (TestStartAgain). Stopping deletes nothing, drops what is queued, which Depth still shows, and leaves the
// cache readable (TestStopThrowsAwayWhatWaits). Who waits for it is told (TestWaitForOneInformer). It stops
// at once even while the server refuses connections (TestStopWhileRefused), and leaves no goroutine
// (TestMain).
type Informer struct {
	cache.SharedIndexInformer

	gvr     schema.GroupVersionResource
	options ResourceOptions
	source  source
	board   *follow.Board // nil: every type is taken to exist
	health  *health.Health
	form    requests.Form
	core    *informer.Informer
	shard   *follow.Shard // nil: everything is followed
	// retry cuts short what the informer's requests wait for.
	retry *requests.RetrySignal
	ran   atomic.Bool // RunWithContext was called, or must not be any more
	// stopped is closed when nothing of the informer runs any more and the status says so.
	stopped chan struct{}
	keeper  *keeper
	// adding holds a token while Acquire adds indexes.
	adding chan struct{}
}

// source is what the informers of a factory share.
type source struct {
	*requests.Server
	onWatchError func(schema.GroupVersionResource, error) // may be nil
	logger       *klog.Logger                             // may be nil
	// namespaces tells which namespaces there are.
	namespaces func() (follow.NamespaceList, error)
	keeping    *keeping // nil: nothing is kept
	sweeper    *store.Sweeper
}

// watchErrorHandler returns what an informer calls when a list or watch ends with an error; nil: that is
// logged.
func (s source) watchErrorHandler(gvr schema.GroupVersionResource,
	options ResourceOptions) cache.WatchErrorHandlerWithContext {
	if s.onWatchError == nil {
		return options.WatchErrorHandler
	}
	return func(ctx context.Context, r *cache.Reflector, err error) {
		if requests.ReasonOf(err) != status.ReasonNone {
			s.onWatchError(gvr, err)
		}
		if options.WatchErrorHandler != nil {
			options.WatchErrorHandler(ctx, r, err)
		}
	}
}

// unpaced is the backoff of a reflector whose requests are paced by a requests.Pacer.
var unpaced = wait.Backoff{Duration: time.Millisecond, Factor: 1}

// newInformer returns an informer of gvr that has not been started.
func newInformer(from source, gvr schema.GroupVersionResource, options ResourceOptions,
	board *follow.Board) (*Informer, error) {
	form, transform, err := options.form()
	if err != nil {
		return nil, err
	}
	if err := options.checkIndexes(); err != nil {
		return nil, fmt.Errorf("%s: %w", formatGVR(gvr), err)
	}
	core := informer.New(nil, informer.Options{
		ObjectDescription: gvr.String(),
		Form:              form,
		ResyncPeriod:      options.resync(),
		Indexers:          options.Indexers,
		Extractors:        options.extractors(),
		Logger:            from.logger,
		Backoff:           &unpaced,
		WatchListPageSize: options.PageSize,
		MinWatchTimeout:   options.MinWatchTimeout,
		SelectsObjects:    options.Shard.followed() != nil,
	})
	if transform != nil {
		if err := core.SetTransform(transform); err != nil {
			return nil, err
		}
	}
	if handler := from.watchErrorHandler(gvr, options); handler != nil {
		if err := core.SetWatchErrorHandlerWithContext(handler); err != nil {
			return nil, err
		}
	}
	i := &Informer{
		SharedIndexInformer: core,
		gvr:                 gvr,
		options:             options,
		source:              from,
		board:               board,
		health:              health.New(gvr, options.describe(), time.Now),
		form:                options.wire(form),
		core:                core,
		retry:               requests.NewRetrySignal(),
		stopped:             make(chan struct{}),
		adding:              make(chan struct{}, 1),
	}
	i.keeper = newKeeper(i)
	i.shard = options.Shard.newFollowed(i)
	return i, nil
}

// GVR is the type that the informer follows.
func (i *Informer) GVR() schema.GroupVersionResource { return i.gvr }

// Status returns what is known of the informer now.
func (i *Informer) Status() status.Status {
	status, _ := i.StatusChange()
	return status
}

// StatusChange returns what Status does, and a channel that is closed when it says something else.
func (i *Informer) StatusChange() (status.Status, <-chan struct{}) {
	status, changed := i.health.Snapshot()
	return statusOf(status), changed
}

// Informer returns i, so that an *Informer can stand where code wants client-go's GenericInformer.
func (i *Informer) Informer() cache.SharedIndexInformer { return i }

// Lister reads the cache: by label selector, by name, in all namespaces or one. What it returns are
// *unstructured.Unstructured, shared and not to be changed. Objects that the selector does not match are not
// decoded.
func (i *Informer) Lister() cache.GenericLister { return lister{i} }

// Stopped is closed when the informer has stopped for good: with the context of Start, the last release of
// its handles, or Shutdown. The last call of a handler has returned then, and Status says that it has
// stopped. The cache stays readable.
func (i *Informer) Stopped() <-chan struct{} { return i.stopped }

// Retry has the informer ask the server again at once, if it sits out the pause after a failure: the caller
// knows that something has changed, that a right was granted for example. It does not wait.
func (i *Informer) Retry() { i.retry.Send() }

// Run is RunWithContext with a stop channel.
func (i *Informer) Run(stopCh <-chan struct{}) { i.RunWithContext(wait.ContextForChannel(stopCh)) }

// RunWithContext runs the informer until ctx ends and all its goroutines have, and keeps its status. With
// a source of types it follows the type as it comes and goes. An informer runs once: further calls log
// that and return.
func (i *Informer) RunWithContext(ctx context.Context) {
	if i.ran.Swap(true) {
		i.ignoreRun(ctx)
		return
	}
	ctx = i.logging(ctx)
	i.health.Started()
	leave := i.source.sweeper.Join(i.core.Store())
	leaveShard := i.options.Shard.join(i)
	i.keeper.start()
	defer func() {
		leave()
		i.core.Stop()
		leaveShard()
		i.keeper.finish()
		<-i.core.Stopped()
		i.health.Stopped(whyEnded(ctx))
		close(i.stopped)
	}()
	i.follower().Run(ctx)
}

// ignoreRun says that the informer does not run again. It and logging are functions of their own so that the
// frame in which a quiet type waits is small: see docs/design/types.md.
func (i *Informer) ignoreRun(ctx context.Context) {
	klog.FromContext(ctx).Info("An informer runs only once, ignoring another call", "type", formatGVR(i.gvr))
}

// logging returns ctx with the informer's logger.
func (i *Informer) logging(ctx context.Context) context.Context {
	if i.source.logger == nil {
		return ctx
	}
	return klog.NewContext(ctx, *i.source.logger)
}

// follower has the informer follow its type.
func (i *Informer) follower() *follow.Follower {
	return &follow.Follower{
		Past: i.keeper.past,
		Type: i.gvr, Versions: i.options.Versions.versions, Namespaces: i.options.Namespaces.set,
		Shard: i.shard, Nothing: i.options.matchesNothing(), Board: i.board,
		Requests: requester{i}, Cache: i.core, Health: i.health, AllNamespaces: i.source.namespaces,
	}
}

// abandon stops an informer unless somebody has run it, so that nobody waits for what will never come.
func (i *Informer) abandon(why error) {
	if !i.ran.Swap(true) {
		i.core.Stop()
		i.health.Stopped(why.Error())
		close(i.stopped)
	}
}

// whyEnded says for a person why the context of an informer has ended.
func whyEnded(ctx context.Context) string {
	switch why := context.Cause(ctx); why {
	case errReleased, errFactoryShut:
		return why.Error()
	default:
		return fmt.Sprintf("its context has ended: %v", why)
	}
}
