package references

import "sync"

// EventType is the type of an [Event].
type EventType string

const (
	// Started: the reference dangles now.
	Started EventType = "Started"
	// Stopped: the reference no longer dangles.
	Stopped EventType = "Stopped"
)

// Reason is the reason why a reference stopped dangling.
type Reason string

const (
	// TargetFound: the target exists.
	TargetFound Reason = "TargetFound"
	// ReferenceGone: the referring object was deleted or changed.
	ReferenceGone Reason = "ReferenceGone"
	// TargetUnknown: no source has all objects of the target's type any more.
	TargetUnknown Reason = "TargetUnknown"
)

// Event is the start or end of dangling of a reference.
type Event struct {
	Type EventType
	// Reason is set for Stopped.
	Reason Reason
	// Reference is the reference after the change.
	Reference Reference
	// Initial is set for references that dangled when the subscription started.
	Initial bool
}

// Subscription calls a handler for dangling references.
type Subscription struct {
	graph *Graph
	ended chan struct{}
	mu    struct {
		sync.Mutex
		queue []Event
		ready chan struct{} // holds one token while the queue is not empty
		ended bool
	}
}

// Subscribe calls handler with Started for each dangling reference, and then for each change, one call at a
// time and in order. Applied to an empty set, the events give the dangling references. A slow handler blocks
// nothing: events are queued in memory. The handler runs on a goroutine of the subscription, which ends with
// Stop or Graph.Close.
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
	go s.deliver(handler) // ends with Stop, which Graph.Close calls too
	return s, nil
}

// Stop ends the subscription. A running call of the handler continues, but there are no further calls.
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

// QueueLength returns the number of queued events.
func (s *Subscription) QueueLength() int {
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
