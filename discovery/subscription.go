package discovery

import "github.com/crdcache/crdcache/internal/queue"

// Subscription delivers the events of a Tracker to one handler, in order. A slow handler delays no other.
// There is a goroutine only while events wait.
type Subscription struct {
	tracker *Tracker
	handler func(Event)
	calls   *queue.Calls
}

// Stop ends the delivery; events still queued are dropped. It does not wait for a call of the handler
// that is under way (Done does), so it may be called from the handler, more than once, and at any time.
func (s *Subscription) Stop() {
	s.calls.Close()
	s.tracker.forgetEnded()
}

// Done is closed when the handler is not called any more, after Stop or the end of the tracker.
func (s *Subscription) Done() <-chan struct{} { return s.calls.Done() }

// Pending returns how many events the handler has not returned from.
func (s *Subscription) Pending() int { return s.calls.Pending() }

// push queues events. It never blocks.
func (s *Subscription) push(events []Event) {
	calls := make([]func(), len(events))
	for i, e := range events {
		calls[i] = func() { s.handler(e) }
	}
	s.calls.Push(calls...)
}

// ended reports whether the handler is not called any more.
func (s *Subscription) ended() bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}
