package health

import (
	"slices"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/queue"
)

// The public values are defined in package status.
type (
	Status         = status.Status
	State          = status.State
	Condition      = status.Condition
	ConditionType  = status.ConditionType
	Incarnation    = status.Incarnation
	RequestFailure = status.RequestFailure
	Listener       = status.Listener
)

// IsTypeAbsent reports whether an informer with this status waits for a type that does not exist.
func IsTypeAbsent(s Status) bool {
	return (s.State == status.Pending || s.State == status.Degraded) && s.Reason.Absent()
}

func countRelist(r *status.Relists, reason status.RelistReason) {
	switch reason {
	case status.RelistExpired:
		r.Expired++
	case status.RelistTooLarge:
		r.TooLarge++
	case status.RelistRestored:
		r.Restored++
	case status.RelistRequested:
		r.Requested++
	case status.RelistDiverged:
		r.Diverged++
	default:
		r.Failed++
	}
}

// statusDiffers reports whether two statuses differ in more than the time of contact.
func statusDiffers(s, other *Status) bool {
	return s.State != other.State || s.Reason != other.Reason || s.Incarnation != other.Incarnation ||
		s.Stale != other.Stale || s.Resuming != other.Resuming || s.Suspended != other.Suspended ||
		s.Terminating != other.Terminating ||
		s.Shard != other.Shard || s.UnlistedSelectors != other.UnlistedSelectors
}

func equalShards(a, b *status.Shard) bool {
	return a != nil && b != nil && a.Key == b.Key && a.Filter == b.Filter &&
		slices.Equal(a.Desired, b.Desired) && slices.Equal(a.Listed, b.Listed)
}

func IncarnationOf(s Status) Incarnation {
	return Incarnation{GVR: s.GVR, Options: s.Options, Version: s.Version, Number: s.Incarnation, UID: s.UID}
}

// ListenerHandle is a status.ListenerHandle.
type ListenerHandle struct {
	aggregator *Aggregator
	listener   Listener
	queue      *queue.Calls
}

func (l *ListenerHandle) Close() {
	l.queue.Close()
	mu := &l.aggregator.mu
	mu.Lock()
	defer mu.Unlock()
	mu.listeners = slices.DeleteFunc(mu.listeners, func(other *ListenerHandle) bool { return other == l })
}

func (l *ListenerHandle) Done() <-chan struct{} { return l.queue.Done() }
func (l *ListenerHandle) Depth() int            { return l.queue.Pending() }

// bindCall returns the call of a listener's function, or nil if the function is nil.
func bindCall[A any](f func(A), arg A) []func() {
	if f == nil {
		return nil
	}
	return []func(){func() { f(arg) }}
}

// bindCall2 is like bindCall, for functions with two parameters.
func bindCall2[A, B any](f func(A, B), arg A, other B) []func() {
	if f == nil {
		return nil
	}
	return []func(){func() { f(arg, other) }}
}

func stateChanged(l *Listener, before, after Status) []func() {
	calls := bindCall2(l.StateChanged, before, after)
	ended, reason, started, synced := IncarnationsBetween(before, after)
	if ended {
		calls = append(calls, bindCall2(l.IncarnationEnded, IncarnationOf(before), reason)...)
	}
	if started {
		calls = append(calls, bindCall(l.IncarnationStarted, IncarnationOf(after))...)
	}
	if synced {
		calls = append(calls, bindCall(l.IncarnationSynced, IncarnationOf(after))...)
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
	return s.State == status.Syncing || s.State == status.Resuming || s.State == status.Synced ||
		s.State == status.Degraded
}

// IsFilled reports whether the cache has been filled in this incarnation. Earlier objects do not count.
func IsFilled(s Status) bool {
	return s.State == status.Synced || s.Stale && !s.Resuming && !s.Suspended
}
