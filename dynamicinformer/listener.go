package dynamicinformer

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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
	// Stale or Terminating. Other fields change without it.
	StateChanged func(before, after Status)
	// GenerationStarted is called when an informer begins to follow its type.
	GenerationStarted func(g Generation)
	// GenerationSynced is called when the first list of a generation has been stored.
	GenerationSynced func(g Generation)
	// GenerationEnded is called when an informer no longer follows its type: because the type is gone, which
	// reason says, because another version takes over, with ReasonVersionChanged, or because the informer was
	// stopped, with ReasonNone.
	GenerationEnded func(g Generation, reason Reason)
	// Relisted is called when a type is listed again.
	Relisted func(g Generation, reason RelistReason)
	// RequestFailed is called for every list or watch that fails, or breaks off. Answers that are part of the
	// protocol (410, a resource version from the future) are no failures; Relisted tells of them.
	RequestFailed func(f RequestFailure)
	// ConditionChanged is called when a condition of the factory has another status.
	ConditionChanged func(before, after Condition)
}

// Generation is one period in which an informer follows its type, from the type's coming to its going.
type Generation struct {
	// GVR is the type, as it was asked for.
	GVR schema.GroupVersionResource
	// View is what the informer shows of the type: see Status.View.
	View string
	// Version is the one that is followed; only with a version policy it can be another than that of GVR.
	Version string
	// Number counts the generations of an informer, from 1.
	Number int
	// UID is that of the CRD; empty where it is not known.
	UID types.UID
}

func (s Status) generation() Generation {
	return Generation{GVR: s.GVR, View: s.View, Version: s.Version, Number: s.Generation, UID: s.UID}
}

// RequestFailure is a list or watch that failed.
type RequestFailure struct {
	// GVR is the type, and View what the informer shows of it.
	GVR  schema.GroupVersionResource
	View string
	// Verb is "list", "watch", or "watch-list" for a watch that begins with a list.
	Verb string
	// Reason classifies Err.
	Reason Reason
	// Err is what the client returned, or what the watch ended with.
	Err error
	// Time is when.
	Time time.Time
}

// ListenerHandle is a listener's place in a factory. It is safe for concurrent use.
type ListenerHandle struct {
	hub      *hub
	listener Listener
	queue    *callQueue
}

// Remove takes the listener out; what it has not been told yet is dropped. It does not wait for a call that is
// under way (Done does), so it may be called from inside, and more than once.
func (l *ListenerHandle) Remove() {
	l.hub.remove(l)
	l.queue.close()
}

// Done is closed when the listener is not called any more, after Remove or Shutdown.
func (l *ListenerHandle) Done() <-chan struct{} { return l.queue.done }

// Depth is how many events the listener has not been told of yet, with the one it is being told of.
func (l *ListenerHandle) Depth() int { return l.queue.pending() }

// AddListener adds a listener, which is first told the present state. It fails with ErrShutdown after Shutdown.
func (f *Factory) AddListener(listener Listener) (*ListenerHandle, error) {
	return f.hub.add(listener)
}

// stateChanged are the calls that a change of a status makes.
func (l *Listener) stateChanged(before, after Status) []func() {
	var calls []func()
	if l.StateChanged != nil {
		calls = append(calls, func() { l.StateChanged(before, after) })
	}
	ended, reason, started, synced := generationsBetween(before, after)
	if ended && l.GenerationEnded != nil {
		calls = append(calls, func() { l.GenerationEnded(before.generation(), reason) })
	}
	if started && l.GenerationStarted != nil {
		calls = append(calls, func() { l.GenerationStarted(after.generation()) })
	}
	if synced && l.GenerationSynced != nil {
		calls = append(calls, func() { l.GenerationSynced(after.generation()) })
	}
	return calls
}

// generationsBetween returns whether the generation of before has ended, and why, and whether that of after has
// started and synced, from one status of an informer to the next.
func generationsBetween(before, after Status) (ended bool, reason Reason, started, synced bool) {
	same := before.Generation == after.Generation
	ended = before.runs() && (!after.runs() || !same)
	started = after.runs() && (!before.runs() || !same)
	synced = after.filled() && (!before.filled() || !same)
	reason = after.Reason
	if ended && started {
		reason = ReasonVersionChanged
	}
	return ended, reason, started, synced
}

// runs returns whether a generation runs.
func (s Status) runs() bool {
	return s.State == StateSyncing || s.State == StateSynced || s.State == StateDegraded
}

// filled returns whether the cache has been filled in this generation.
func (s Status) filled() bool { return s.State == StateSynced || s.Stale }

func (l *Listener) relisted(g Generation, reason RelistReason) []func() {
	if l.Relisted == nil {
		return nil
	}
	return []func(){func() { l.Relisted(g, reason) }}
}

func (l *Listener) requestFailed(f RequestFailure) []func() {
	if l.RequestFailed == nil {
		return nil
	}
	return []func(){func() { l.RequestFailed(f) }}
}

func (l *Listener) conditionChanged(before, after Condition) []func() {
	if l.ConditionChanged == nil {
		return nil
	}
	return []func(){func() { l.ConditionChanged(before, after) }}
}

// drain waits until the listener has been told everything, and takes it out.
func (l *ListenerHandle) drain(ctx context.Context) error {
	err := l.queue.drain(ctx)
	l.Remove()
	return err
}
