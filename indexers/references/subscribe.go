package references

import "sync"

// EventType says what happened to a reference.
type EventType string

const (
	// Started: the reference dangles now.
	Started EventType = "Started"
	// Stopped: it does not dangle any more.
	Stopped EventType = "Stopped"
)

// Reason says why a reference dangles no more.
type Reason string

const (
	// TargetFound: there is an object at its end.
	TargetFound Reason = "TargetFound"
	// ReferenceGone: the object that made it is gone, or refers to something else.
	ReferenceGone Reason = "ReferenceGone"
	// TargetUnknown: nobody follows the objects at its end any more.
	TargetUnknown Reason = "TargetUnknown"
)

// Event is a change of what dangles.
type Event struct {
	Type EventType
	// Reason is set for Stopped.
	Reason Reason
	// Reference is the one, as it is after the change.
	Reference Reference
	// Initial is set for what dangled when the subscription began.
	Initial bool
}

// Subscription tells a handler what dangles.
type Subscription struct {
	graph *Graph
	ended chan struct{}
	mu    struct {
		sync.Mutex
		queue []Event
		ready chan struct{} // holds one token while there is something in the queue
		ended bool
	}
}

// Subscribe calls handler with Started for each reference that dangles now, and then for each change, one
// call at a time and in order. Applied to an empty set, the events give what dangles at any time. A slow
// handler delays nobody: events wait for it in memory. Handlers run on a goroutine of the subscription, which
// ends with Stop or with the graph.
func (g *Graph) Subscribe(handler func(Event)) (*Subscription, error) {
	s := &Subscription{graph: g, ended: make(chan struct{})}
	s.mu.ready = make(chan struct{}, 1)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.closed {
		return nil, ErrClosed
	}
	for _, r := range g.allDangling() {
		s.push(Event{Type: Started, Reference: r, Initial: true})
	}
	g.mu.subscriptions[s] = struct{}{}
	go s.deliver(handler) // ends with Stop, which Close of the graph calls, too
	return s, nil
}

// Stop ends the subscription. The handler may still be in a call, but is not called again.
func (s *Subscription) Stop() {
	s.mu.Lock()
	ended := s.mu.ended
	s.mu.ended = true
	s.mu.Unlock()
	if ended {
		return
	}
	close(s.ended)
	s.graph.mu.Lock()
	defer s.graph.mu.Unlock()
	delete(s.graph.mu.subscriptions, s)
}

// Waiting counts the events that the handler has not been called with yet.
func (s *Subscription) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.queue)
}

func (s *Subscription) push(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.queue = append(s.mu.queue, e)
	select {
	case s.mu.ready <- struct{}{}:
	default:
	}
}

func (s *Subscription) deliver(handler func(Event)) {
	for {
		select {
		case <-s.ended:
			return
		case <-s.mu.ready:
		}
		s.mu.Lock()
		queue := s.mu.queue
		s.mu.queue = nil
		s.mu.Unlock()
		for _, e := range queue {
			select {
			case <-s.ended:
				return
			default:
				handler(e)
			}
		}
	}
}
