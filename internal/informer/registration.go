package informer

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/internal/queue"
)

// Registration is an event handler of an Informer, with its queue and resync schedule. The handler can call
// its methods (but see WaitForSync).
type Registration struct {
	foreignRegistration //lint:ignore U1000 nil; it has the methods that newer releases add
	informer            *Informer
	// added and options are the arguments of AddEventHandlerWithOptions; handler is added without wrappers.
	added   cache.ResourceEventHandler
	options cache.HandlerOptions
	handler cache.ResourceEventHandler
	name    string
	project handlerProjection
	logger  klog.Logger
	queue   *queue.Queue[notification]
	// coalescer is nil if the handler receives every event.
	coalescer *coalescer
	// synced is replaced by Forget.
	synced atomic.Pointer[syncPoint]
	// ending is closed when the handler or the informer ends, finished when the last call has returned.
	ending, finished chan struct{}
	ended            sync.Once
	// previous are the registrations that Attach continues, until they have finished.
	previous atomic.Pointer[[]*Registration]

	// The rest is guarded by Informer.mu.

	// inResync is true if the handler takes part in the current resync, and before the first resync check.
	inResync bool
	// requestedPeriod is the requested resync period, period the effective one (0 means none).
	requestedPeriod, period time.Duration
	// nextResync is the time of the next resync.
	nextResync time.Time
	// addedAt and onCaughtUp are fields of a late handler: see Informer.addLateLocked.
	addedAt    int
	onCaughtUp []func()
}

var _ cache.ResourceEventHandlerRegistration = (*Registration)(nil)

// HasSynced reports whether the handler has received all objects of the initial list.
func (r *Registration) HasSynced() bool { return r.synced.Load().reached() }

// Synced returns a channel that is closed when HasSynced becomes true. Informer.Forget replaces the channel.
// As in client-go, it stays open if the informer stops or the handler is removed; WaitForSync returns.
func (r *Registration) Synced() <-chan struct{} { return r.synced.Load().done }

// HasSyncedChecker returns HasSynced as a channel.
func (r *Registration) HasSyncedChecker() cache.DoneChecker { return checker{r.syncName, &r.synced} }

func (r *Registration) syncName() string {
	return fmt.Sprintf("%s + event handler %s", r.informer.syncName(), r.Name())
}

// WaitForSync waits until the handler has received all objects of the initial list. It returns ErrStopped or
// ErrHandlerRemoved if that is no longer possible, or the context's cause. The handler cannot await it.
func (r *Registration) WaitForSync(ctx context.Context) error {
	ended, err := r.synced.Load().wait(ctx, r.finished)
	switch {
	case !ended:
		return err
	case r.informer.IsStopped():
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

// MarkFilled is Mark, after the cached objects that the handler receives when it is added.
func (r *Registration) MarkFilled(mark func()) {
	r.informer.mu.Lock()
	defer r.informer.mu.Unlock()
	if r.addedAt > 0 {
		r.onCaughtUp = append(r.onCaughtUp, mark)
		return
	}
	r.Mark(mark)
}

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
func (r *Registration) push(notifications ...notification) {
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

// start processes the queue until it is closed, and then calls ended.
func (r *Registration) start(ended func()) {
	handle := func(n notification) {
		if !r.call(n) {
			r.pause(time.Second)
		}
	}
	if r.coalescer != nil {
		handle = r.coalescer.wrap(handle)
	}
	r.queue.Start(handle, func() {
		close(r.finished)
		ended()
	})
}

// call delivers a notification. It returns false if the handler has panicked and utilruntime.ReallyCrash,
// which is on by default, is off. The notification is then skipped.
func (r *Registration) call(n notification) (ok bool) {
	defer utilruntime.HandleCrashWithLogger(r.logger)
	n.deliver(r.handler, r.project)
	return true
}

// pause waits. The end of the handler ends the pause.
func (r *Registration) pause(d time.Duration) {
	timer := r.informer.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-r.ending:
	}
}
