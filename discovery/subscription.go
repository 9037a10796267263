package discovery

import "github.com/crdcache/crdcache/internal/queue"

// Subscription delivers the events of a Tracker to one handler, in order. A slow handler does not delay
// others. It has a goroutine only while events are queued.
type Subscription struct {
	tracker *Tracker
	handler func(Event)
	calls   *queue.Calls
}

// Stop ends the delivery and drops queued events. It does not wait for a call of the handler in progress (see
// Done), so that handlers can call it. It is idempotent.
func (s *Subscription) Stop() {
	s.calls.Close()
	s.tracker.forgetEnded()
}

// Done returns a channel that is closed after Stop or the end of the tracker, when the handler is no longer
// called.
func (s *Subscription) Done() <-chan struct{} { return s.calls.Done() }

// Pending returns the number of queued events, including the one being handled.
func (s *Subscription) Pending() int { return s.calls.Pending() }

// push queues events. It never blocks.
func (s *Subscription) push(events []Event) {
	calls := make([]func(), len(events))
	for i, e := range events {
		calls[i] = func() { s.handler(e) }
	}
	s.calls.Push(calls...)
}

// ended reports whether the handler is no longer called.
func (s *Subscription) ended() bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}
