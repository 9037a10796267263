package health

import (
	"context"

	"github.com/crdcache/crdcache/internal/queue"
	"github.com/crdcache/crdcache/internal/requests"
)

// GenerationOf returns the generation of a status.
func GenerationOf(s Status) Generation {
	return Generation{GVR: s.GVR, View: s.View, Version: s.Version, Number: s.Generation, UID: s.UID}
}

// ListenerHandle is a listener's place in a factory. It is safe for concurrent use.
type ListenerHandle struct {
	hub      *Hub
	listener Listener
	queue    *queue.Calls
}

// Close takes the listener out; what it has not been told yet is dropped. It does not wait for a call that
// is under way (Done does), so it may be called from inside, and more than once.
func (l *ListenerHandle) Close() {
	l.hub.Remove(l)
	l.queue.Close()
}

// Done is closed when the listener is not called any more, after Close or Shutdown.
func (l *ListenerHandle) Done() <-chan struct{} { return l.queue.Done() }

// Depth is how many events the listener has not been told of yet, with the one it is being told of.
func (l *ListenerHandle) Depth() int { return l.queue.Pending() }

// stateChanged are the calls that a change of a status makes.
func stateChanged(l *Listener, before, after Status) []func() {
	var calls []func()
	if l.StateChanged != nil {
		calls = append(calls, func() { l.StateChanged(before, after) })
	}
	ended, reason, started, synced := GenerationsBetween(before, after)
	if ended && l.GenerationEnded != nil {
		calls = append(calls, func() { l.GenerationEnded(GenerationOf(before), reason) })
	}
	if started && l.GenerationStarted != nil {
		calls = append(calls, func() { l.GenerationStarted(GenerationOf(after)) })
	}
	if synced && l.GenerationSynced != nil {
		calls = append(calls, func() { l.GenerationSynced(GenerationOf(after)) })
	}
	return calls
}

// GenerationsBetween returns whether the generation of before has ended, and why, and whether that of after
// has started and synced, from one status of an informer to the next.
func GenerationsBetween(before, after Status) (ended bool, reason requests.Reason, started, synced bool) {
	same := before.Generation == after.Generation
	ended = Runs(before) && (!Runs(after) || !same)
	started = Runs(after) && (!Runs(before) || !same)
	synced = Filled(after) && (!Filled(before) || !same)
	reason = after.Reason
	if ended && started {
		reason = requests.ReasonVersionChanged
	}
	return ended, reason, started, synced
}

// Runs returns whether a generation runs.
func Runs(s Status) bool {
	return s.State == StateSyncing || s.State == StateResuming || s.State == StateSynced ||
		s.State == StateDegraded
}

// Filled returns whether the cache has been filled in this generation: what an earlier process kept does not
// count.
func Filled(s Status) bool { return s.State == StateSynced || s.Stale && !s.Resuming }

func relisted(l *Listener, g Generation, reason requests.RelistReason) []func() {
	if l.Relisted == nil {
		return nil
	}
	return []func(){func() { l.Relisted(g, reason) }}
}

func requestFailed(l *Listener, f RequestFailure) []func() {
	if l.RequestFailed == nil {
		return nil
	}
	return []func(){func() { l.RequestFailed(f) }}
}

func conditionChanged(l *Listener, before, after Condition) []func() {
	if l.ConditionChanged == nil {
		return nil
	}
	return []func(){func() { l.ConditionChanged(before, after) }}
}

// drain waits until the listener has been told everything, and takes it out.
func (l *ListenerHandle) drain(ctx context.Context) error {
	err := l.queue.Drain(ctx)
	l.Close()
	return err
}
