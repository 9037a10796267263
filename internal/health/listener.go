package health

import (
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/queue"
)

// IncarnationOf returns the incarnation of a status.
func IncarnationOf(s Status) Incarnation {
	return Incarnation{GVR: s.GVR, Options: s.Options, Version: s.Version, Number: s.Incarnation, UID: s.UID}
}

// ListenerHandle is the registration of a listener. It is safe for concurrent use.
type ListenerHandle struct {
	aggregator *Aggregator
	listener   Listener
	queue      *queue.Calls
}

// Close removes the listener and drops its pending events. It does not wait for a call in progress (see
// Done), so that listeners can call it. It is idempotent.
func (l *ListenerHandle) Close() {
	l.aggregator.Remove(l)
	l.queue.Close()
}

// Done returns a channel that is closed after Close or Shutdown, when the listener is no longer called.
func (l *ListenerHandle) Done() <-chan struct{} { return l.queue.Done() }

// Depth returns the number of pending events, including the one being handled.
func (l *ListenerHandle) Depth() int { return l.queue.Pending() }

func stateChanged(l *Listener, before, after Status) []func() {
	var calls []func()
	if l.StateChanged != nil {
		calls = append(calls, func() { l.StateChanged(before, after) })
	}
	ended, reason, started, synced := IncarnationsBetween(before, after)
	if ended && l.IncarnationEnded != nil {
		calls = append(calls, func() { l.IncarnationEnded(IncarnationOf(before), reason) })
	}
	if started && l.IncarnationStarted != nil {
		calls = append(calls, func() { l.IncarnationStarted(IncarnationOf(after)) })
	}
	if synced && l.IncarnationSynced != nil {
		calls = append(calls, func() { l.IncarnationSynced(IncarnationOf(after)) })
	}
	return calls
}

// IncarnationsBetween compares two successive statuses of an informer. It returns whether the incarnation of
// before has ended, with the reason, and whether the incarnation of after has started and synced.
func IncarnationsBetween(before, after Status) (ended bool, reason status.Reason, started, synced bool) {
	isSame := before.Incarnation == after.Incarnation
	ended = IsRunning(before) && (!IsRunning(after) || !isSame)
	started = IsRunning(after) && (!IsRunning(before) || !isSame)
	synced = IsFilled(after) && (!IsFilled(before) || !isSame)
	reason = after.Reason
	if ended && started {
		reason = status.ReasonVersionChanged
	}
	return ended, reason, started, synced
}

// IsRunning reports whether an incarnation runs.
func IsRunning(s Status) bool {
	return s.State == StateSyncing || s.State == StateResuming || s.State == StateSynced ||
		s.State == StateDegraded
}

// IsFilled reports whether the cache has been filled in this incarnation. Restored objects do not count.
func IsFilled(s Status) bool { return s.State == StateSynced || s.Stale && !s.Resuming }

func relisted(l *Listener, g Incarnation, reason status.RelistReason) []func() {
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
