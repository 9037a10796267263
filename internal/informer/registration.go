package informer

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/internal/queue"
)

// Registration is one event handler's membership in an Informer: its queue, its resync schedule and whether
// it has seen the initial list. It is what the Informer's AddEventHandler methods return. All methods are
// safe for concurrent use, also from inside the handler (but see WaitForSync).
type Registration struct {
	informer *Informer
	handler  cache.ResourceEventHandler
	name     string
	// view turns items into what the handler gets.
	view   view
	logger klog.Logger
	queue  *queue.Queue[notification]
	// synced is replaced by Forget, after which the handler has an initial list to see again.
	synced atomic.Pointer[syncPoint]
	// dismissed is closed when the handler is removed or the informer stops, finished when the handler will
	// not be called any more.
	dismissed, finished chan struct{}

	// The rest is guarded by Informer.mu.

	// resyncing says whether the handler takes part in resyncs right now: true until the first resync check.
	resyncing bool
	// requested is the resync period asked for, period the one in effect (0: none), next when it is due.
	requested, period time.Duration
	next              time.Time
}

var _ cache.ResourceEventHandlerRegistration = (*Registration)(nil)

// HasSynced reports whether the handler has been handed every object of the initial list.
func (r *Registration) HasSynced() bool { return r.synced.Load().reached() }

// HasSyncedChecker is HasSynced as a channel. As in client-go, the channel stays open when the informer stops
// or the handler is removed before it has synced; WaitForSync returns in those cases.
func (r *Registration) HasSyncedChecker() cache.DoneChecker {
	return checker{
		name: func() string {
			return fmt.Sprintf("%s + event handler %s",
				r.informer.syncName(), r.Name())
		},
		current: &r.synced,
	}
}

// WaitForSync waits until the handler has been handed every object of the initial list. It returns ErrStopped
// or ErrHandlerRemoved when that can no longer happen, or the context's cause. From inside the handler it can
// only return an error.
func (r *Registration) WaitForSync(ctx context.Context) error {
	synced := r.synced.Load()
	select {
	case <-synced.done:
		return nil
	default:
	}
	select {
	case <-synced.done:
		return nil
	case <-r.finished:
		if synced.reached() {
			return nil
		}
		if r.informer.IsStopped() {
			return ErrStopped
		}
		return ErrHandlerRemoved
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Depth is the number of events that wait in the handler's queue, with the one being handled. After the
// informer has stopped, or the handler was removed, it is the number of events that were thrown away.
func (r *Registration) Depth() int { return r.queue.Len() }

// Mark has mark called in its turn: by the handler's goroutine, after everything that has been queued so far.
// It is dropped when the handler is removed or the informer stops before that, as notifications are.
func (r *Registration) Mark(mark func()) { r.queue.Push(marker(mark)) }

// Lag is how long ago the oldest event was queued that the handler has not returned from; 0 when there is
// none.
func (r *Registration) Lag() time.Duration { return r.queue.Lag() }

// Name describes the handler for people: the name that a Wrapper gives it, or its Go type.
func (r *Registration) Name() string { return r.name }

// ShutdownChan is closed when the handler was removed, or the informer stopped, and the last call of the
// handler has returned. cache.ShutDownEventHandler waits for it.
func (r *Registration) ShutdownChan() <-chan struct{} { return r.finished }

// start has the queue handed to the handler until the queue is closed, and calls ended then. Removing the
// handler or stopping the informer does that.
func (r *Registration) start(ended func()) {
	r.queue.Start(func(n notification) {
		if !r.call(n) {
			r.pause(time.Second)
		}
	}, func() {
		close(r.finished)
		ended()
	})
}

// call delivers one notification. It returns false when the handler panicked and the process is set to
// survive that (utilruntime.ReallyCrash is off; it is on by default): the notification is then skipped.
func (r *Registration) call(n notification) (ok bool) {
	defer utilruntime.HandleCrashWithLogger(r.logger)
	n.deliver(r.handler, r.view)
	return true
}

// pause waits, or until the handler is removed or the informer stops.
func (r *Registration) pause(d time.Duration) {
	timer := r.informer.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-r.dismissed:
	}
}

// dueLocked reports whether the handler takes part in a resync now, and if so plans the next one.
func (r *Registration) dueLocked(now time.Time) bool {
	if r.period == 0 || now.Before(r.next) {
		return false
	}
	r.next = now.Add(r.period)
	return true
}
