package dynamicinformer

import (
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/health"
)

// Listener is told what happens to the informers of a factory: for metrics, logs and alarms. It is given to
// New in Options.Listener, or to Factory.AddListener at any time. Funcs that are nil are not called.
//
// The funcs of one listener are called in the order in which things happened, one at a time, and with no lock
// held: they may call back into the factory, but must not wait for its Shutdown. A slow listener delays
// nobody: what it has not been told yet is queued, without a bound. A panic is treated as that of an event
// handler: it ends the process, unless utilruntime.ReallyCrash is off; then the call is skipped.
//
// A listener that comes late is first told the present state: StateChanged with a zero Status before it,
// GenerationStarted and GenerationSynced for each informer, and ConditionChanged for each condition.
type Listener struct {
	// StateChanged is called when the status of an informer says something else: state, reason, generation,
	// Stale, Terminating or Shard. Other fields change without it.
	StateChanged func(before, after status.Status)
	// GenerationStarted is called when an informer begins to follow its type.
	GenerationStarted func(g status.Generation)
	// GenerationSynced is called when the first list of a generation has been stored.
	GenerationSynced func(g status.Generation)
	// GenerationEnded is called when an informer no longer follows its type: because the type is gone, which
	// reason says, because another version takes over, with ReasonVersionChanged, or because the informer was
	// stopped, with ReasonNone.
	GenerationEnded func(g status.Generation, reason status.Reason)
	// Relisted is called when a type is listed again.
	Relisted func(g status.Generation, reason status.RelistReason)
	// RequestFailed is called for every list or watch that fails, or breaks off. Answers that are part of the
	// protocol (410, a resource version from the future) are no failures; Relisted tells of them.
	RequestFailed func(f status.RequestFailure)
	// ConditionChanged is called when a condition of the factory has another status.
	ConditionChanged func(before, after status.Condition)
}

// ListenerHandle is a listener's place in a factory. It is safe for concurrent use.
type ListenerHandle struct{ inner *health.ListenerHandle }

// Remove takes the listener out; what it has not been told yet is dropped. It does not wait for a call that
// is under way (Done does), so it may be called from inside, and more than once.
func (l *ListenerHandle) Remove() { l.inner.Remove() }

// Done is closed when the listener is not called any more, after Remove or Shutdown.
func (l *ListenerHandle) Done() <-chan struct{} { return l.inner.Done() }

// Depth is how many events the listener has not been told of yet, with the one it is being told of.
func (l *ListenerHandle) Depth() int { return l.inner.Depth() }

// AddListener adds a listener, which is first told the present state. It fails with ErrShutdown after
// Shutdown.
func (f *Factory) AddListener(listener Listener) (*ListenerHandle, error) {
	inner, err := f.hub.Add(listener.inner())
	if err != nil {
		return nil, err
	}
	return &ListenerHandle{inner}, nil
}

// inner converts the listener to the internal type. Functions that are nil remain nil.
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
