package delivery

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/queue"
	"github.com/crdcache/crdcache/internal/store"
)

// Config has the properties of an informer that its registrations use.
type Config struct {
	Format store.Format
	Clock  clock.WithTicker
	Logger *klog.Logger // of handlers without a logger
	// ResyncPeriod is the resync period of handlers without one.
	ResyncPeriod time.Duration
	// InformerName returns the name of the informer in the names of sync points.
	InformerName func() string
	// Stopping is closed when the informer stops, before its handlers end.
	Stopping <-chan struct{}
	// Workers counts the queues of started handlers.
	Workers *sync.WaitGroup
}

// foreignRegistration is embedded, so that a program with a newer client-go compiles (TestForeign).
type foreignRegistration = cache.ResourceEventHandlerRegistration

// Registration is an event handler of an informer, with its queue and resync schedule. The handler can call
// its methods (but see WaitForSync). All exported methods are safe for concurrent use.
type Registration struct {
	foreignRegistration //lint:ignore U1000 nil; it has the methods that newer releases add
	config              *Config
	// added and options are the arguments of AddEventHandlerWithOptions; handler is added without wrappers.
	added   cache.ResourceEventHandler
	options cache.HandlerOptions
	handler cache.ResourceEventHandler
	name    string
	project handlerProjection
	logger  klog.Logger
	queue   *queue.Queue[Notification]
	// coalescer is nil if the handler receives every event.
	coalescer *coalescer
	// synced is replaced by Handlers.ResetSynced.
	synced atomic.Pointer[SyncPoint]
	// ending is closed when the handler or the informer ends, finished when the last call has returned.
	ending, finished chan struct{}
	ended            sync.Once
	// previous are the registrations that this one continues, until they have finished.
	previous atomic.Pointer[[]*Registration]

	// The informer's lock guards the rest.

	// inResync is true if the handler takes part in the current resync, and before the first resync check.
	inResync bool
	// requestedPeriod is the requested resync period, period the effective one (0 means none).
	requestedPeriod, period time.Duration
	// nextResync is the time of the next resync.
	nextResync time.Time
	// addedAt and onCaughtUp are fields of a late handler: see Handlers.AddLate.
	addedAt    int
	onCaughtUp []func()
}

// NewRegistration returns a registration for Handlers.Add. selectsObjects is true if the informer selects
// objects. Their events are then merged only if the handler asks for it.
func NewRegistration(config *Config, handler cache.ResourceEventHandler, options cache.HandlerOptions,
	selectsObjects bool) *Registration {
	traits := collectTraits(handler)
	r := &Registration{
		config:          config,
		added:           handler,
		options:         options,
		handler:         traits.handler,
		name:            traits.name,
		project:         newProjection(config.Format, traits),
		logger:          *config.Logger,
		queue:           queue.New(config.Clock.Now, (*Notification).eventCount, (*Notification).next),
		ending:          make(chan struct{}),
		finished:        make(chan struct{}),
		inResync:        true,
		requestedPeriod: config.ResyncPeriod,
	}
	if traits.coalescing && !(traits.coalescingByDefault && selectsObjects) {
		r.coalescer = newCoalescer(r.queue, config.Clock.Now)
	}
	r.synced.Store(NewSyncPoint())
	if options.Logger != nil {
		r.logger = *options.Logger
	}
	if options.ResyncPeriod != nil {
		r.requestedPeriod = *options.ResyncPeriod
	}
	return r
}

// Continue returns a registration that continues detached registrations of one handler. It awaits their end
// before it calls the handler.
func Continue(config *Config, previous []*Registration, selectsObjects bool) *Registration {
	r := NewRegistration(config, previous[0].added, previous[0].options, selectsObjects)
	r.previous.Store(&previous)
	if r.options.ResyncPeriod != nil {
		r.requestedPeriod = previous[0].period
	}
	r.Mark(r.awaitPrevious)
	return r
}

// awaitPrevious waits until the previous registrations of the handler have finished, or the handler ends.
func (r *Registration) awaitPrevious() {
	for _, p := range *r.previous.Load() {
		select {
		case <-p.finished:
		case <-r.ending:
			return
		}
	}
	r.previous.Store(nil)
}

// PushDifferences queues the differences between the content that the previous registrations have and that
// of the informer: objects that have left the shard, and changes. synced is HasSynced of the informer.
func (r *Registration) PushDifferences(leaving []Notification, changes List, synced bool) {
	r.push(leaving...)
	if count, _ := changes.count(&status.EventStats{}); count > 0 {
		r.push(changes.element(count, false))
	}
	lacksSync := func(p *Registration) bool { return !p.HasSynced() }
	switch {
	case !slices.ContainsFunc(*r.previous.Load(), lacksSync):
		r.synced.Load().MarkReached()
	case synced:
		r.pushSynced()
	}
}

// PushContent queues the cached objects, except hidden ones, as the initial list of a handler that is added
// to a running informer. synced is HasSynced of the informer. hidden can be nil.
func (r *Registration) PushContent(snapshot *store.Snapshot, hidden func(store.Item) bool, synced bool) {
	content := &initialContent{snapshot: snapshot}
	if hidden != nil {
		content = &initialContent{items: slices.DeleteFunc(snapshot.Items(), hidden)}
	}
	if n := content.Len(); n > 0 {
		r.push(List{Changes: content, Initial: true, additionsOnly: true}.element(n, false))
	}
	if synced {
		r.pushSynced()
	}
}

// pushSynced makes HasSynced true after the queued notifications.
func (r *Registration) pushSynced() { r.Mark(r.synced.Load().MarkReached) }

// HasSynced reports whether the handler has received all objects of the initial list.
func (r *Registration) HasSynced() bool { return r.synced.Load().Reached() }

// Synced returns a channel that is closed when HasSynced becomes true. Informer.Forget replaces the channel.
// As in client-go, it stays open if the informer stops or the handler is removed; WaitForSync returns.
func (r *Registration) Synced() <-chan struct{} { return r.synced.Load().Done() }

// HasSyncedChecker returns HasSynced as a channel.
func (r *Registration) HasSyncedChecker() cache.DoneChecker { return Checker{r.syncName, &r.synced} }

func (r *Registration) syncName() string {
	return fmt.Sprintf("%s + event handler %s", r.config.InformerName(), r.Name())
}

// WaitForSync waits until the handler has received all objects of the initial list. It returns ErrStopped or
// ErrHandlerRemoved if that is no longer possible, or the context's cause. The handler cannot await it.
func (r *Registration) WaitForSync(ctx context.Context) error {
	ended, err := r.synced.Load().Wait(ctx, r.finished)
	switch {
	case !ended:
		return err
	case queue.IsClosed(r.config.Stopping):
		return ErrStopped
	}
	return ErrHandlerRemoved
}

// Depth returns the number of events in the handler's queue, including the current one. After the end of the
// handler it is the number of discarded events.
func (r *Registration) Depth() int { return r.queue.Len() }

// Mark queues a function, which the handler's goroutine calls in order with the notifications. It is
// discarded if the handler is removed or the informer stops.
func (r *Registration) Mark(mark func()) { r.push(newMark(mark)) }

// Lag returns the age of the oldest event that the handler has not processed, or 0.
func (r *Registration) Lag() time.Duration {
	if r.coalescer != nil {
		return r.coalescer.lag()
	}
	return r.queue.Lag()
}

// Coalesced returns the number of events that were merged with others in the handler's queue.
func (r *Registration) Coalesced() int64 {
	if r.coalescer == nil {
		return 0
	}
	return r.coalescer.coalesced.Load()
}

// push queues notifications.
func (r *Registration) push(notifications ...Notification) {
	if r.coalescer != nil {
		r.coalescer.push(true, notifications...)
		return
	}
	r.queue.Push(notifications...)
}

// Name returns the name of a Named handler, or its Go type.
func (r *Registration) Name() string { return r.name }

// DecodesBecause returns the reason why objects are decoded for the handler; empty if they are not.
func (r *Registration) DecodesBecause() string { return r.project.decodesBecause }

// ShutdownChan is closed when the handler has been removed or the informer has stopped, and the last call of
// the handler has returned. cache.ShutDownEventHandler waits for it.
func (r *Registration) ShutdownChan() <-chan struct{} { return r.finished }

// Start calls the handler until its queue is closed.
func (r *Registration) Start() {
	handle := func(n Notification) {
		if !r.call(n) {
			r.pause(time.Second)
		}
	}
	if r.coalescer != nil {
		handle = r.coalescer.wrap(handle)
	}
	r.config.Workers.Add(1)
	r.queue.Start(handle, func() {
		close(r.finished)
		r.config.Workers.Done()
	})
}

// call delivers a notification. It returns false if the handler has panicked and utilruntime.ReallyCrash,
// which is on by default, is off. The notification is then skipped.
func (r *Registration) call(n Notification) (ok bool) {
	defer utilruntime.HandleCrashWithLogger(r.logger)
	n.deliver(r.handler, r.project)
	return true
}

// pause waits. The end of the handler ends the pause.
func (r *Registration) pause(d time.Duration) {
	timer := r.config.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-r.ending:
	}
}

// end discards the queues of the handler and of the registrations that it continues. It is idempotent.
func (r *Registration) end() {
	r.ended.Do(func() {
		r.queue.Close()
		if r.coalescer != nil {
			r.coalescer.close()
		}
		close(r.ending)
	})
	if previous := r.previous.Load(); previous != nil {
		for _, p := range *previous {
			p.end()
		}
	}
}
