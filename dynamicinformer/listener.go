package dynamicinformer

import (
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/health"
)

// Listener observes the informers of a factory, for metrics, logs and alerts. Pass it to New in
// Options.Listener, or to Factory.AddListener at any time. Nil functions are not called.
//
// The functions of a listener are called in order, one at a time, without locks. They may call the factory,
// but must not wait for its Shutdown. Each listener has its own unbounded queue, so a slow one delays no
// other component. A panic ends the process; with utilruntime.ReallyCrash off, the call is skipped.
//
// A new listener first receives the current state: StateChanged with a zero Status as before,
// GenerationStarted and GenerationSynced for each informer, and ConditionChanged for each condition.
type Listener struct {
	// StateChanged is called when the state, reason, generation, Stale, Terminating or Shard of an informer's
	// status changes.
	StateChanged func(before, after status.Status)
	// GenerationStarted is called when an informer begins to watch its type.
	GenerationStarted func(g status.Generation)
	// GenerationSynced is called when the first list of a generation is in the cache.
	GenerationSynced func(g status.Generation)
	// GenerationEnded is called when an informer no longer watches its type. reason is the reason why the
	// type is gone, ReasonVersionChanged if another version replaces this one, or ReasonNone if the informer
	// stopped.
	GenerationEnded func(g status.Generation, reason status.Reason)
	// Relisted is called when an informer relists its type.
	Relisted func(g status.Generation, reason status.RelistReason)
	// RequestFailed is called for every failed list or watch. Answers that are part of the protocol (410, a
	// resource version from the future) are not failures; Relisted reports them.
	RequestFailed func(f status.RequestFailure)
	// ConditionChanged is called when the Status of a condition of the factory changes.
	ConditionChanged func(before, after status.Condition)
}

// ListenerHandle is the registration of a listener. It is safe for concurrent use.
type ListenerHandle struct{ inner *health.ListenerHandle }

// Remove removes the listener and drops its queued calls. It does not wait for a running call (Done does), so
// the listener itself may call it. Further calls do nothing.
func (l *ListenerHandle) Remove() { l.inner.Remove() }

// Done returns a channel that is closed when the listener is no longer called, after Remove or Shutdown.
func (l *ListenerHandle) Done() <-chan struct{} { return l.inner.Done() }

// Depth returns the number of queued calls, including the running one.
func (l *ListenerHandle) Depth() int { return l.inner.Depth() }

// AddListener adds a listener. After Shutdown it returns ErrShutdown.
func (f *Factory) AddListener(listener Listener) (*ListenerHandle, error) {
	inner, err := f.hub.Add(listener.inner())
	if err != nil {
		return nil, err
	}
	return &ListenerHandle{inner}, nil
}

// inner converts the listener to the internal type. Nil functions remain nil.
func (l Listener) inner() health.Listener {
	var inner health.Listener
	if tell := l.StateChanged; tell != nil {
		inner.StateChanged = func(before, after health.Status) { tell(statusOf(before), statusOf(after)) }
	}
	if tell := l.GenerationStarted; tell != nil {
		inner.GenerationStarted = func(g health.Generation) { tell(status.Generation(g)) }
	}
	if tell := l.GenerationSynced; tell != nil {
		inner.GenerationSynced = func(g health.Generation) { tell(status.Generation(g)) }
	}
	if tell := l.GenerationEnded; tell != nil {
		inner.GenerationEnded = func(g health.Generation,
			reason status.Reason) {
			tell(status.Generation(g), reason)
		}
	}
	if tell := l.Relisted; tell != nil {
		inner.Relisted = func(g health.Generation,
			reason status.RelistReason) {
			tell(status.Generation(g), reason)
		}
	}
	if tell := l.RequestFailed; tell != nil {
		inner.RequestFailed = func(f health.RequestFailure) { tell(status.RequestFailure(f)) }
	}
	if tell := l.ConditionChanged; tell != nil {
		inner.ConditionChanged = func(before, after health.Condition) {
			tell(status.Condition(before),
				status.Condition(after))
		}
	}
	return inner
}
