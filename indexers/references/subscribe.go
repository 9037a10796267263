package references

import "github.com/crdcache/crdcache/internal/queue"

// EventType is the type of an [Event].
type EventType string

const (
	// DanglingStarted: the reference dangles now.
	DanglingStarted EventType = "Started"
	// DanglingStopped: the reference no longer dangles.
	DanglingStopped EventType = "Stopped"
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

// Event reports that a reference has started or stopped dangling.
type Event struct {
	Type EventType
	// Reason is set for DanglingStopped.
	Reason Reason
	// Reference is the reference after the change.
	Reference Reference
	// Initial is set for references that dangled when the subscription started.
	Initial bool
}

// Subscription calls a handler for dangling references.
type Subscription struct {
	graph   *Graph
	handler func(Event)
	calls   *queue.Calls
}

// Subscribe calls handler with DanglingStarted for each dangling reference, and then for each change, one
// call at a time and in order. A slow handler blocks nothing: events are queued in memory. The handler runs
// on a goroutine of the subscription, which ends with Stop or Graph.Close.
func (g *Graph) Subscribe(handler func(Event)) (*Subscription, error) {
	s := &Subscription{graph: g, handler: handler, calls: queue.NewCalls()}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.closed {
		return nil, ErrClosed
	}
	for _, r := range g.allDangling() {
		s.push(Event{Type: DanglingStarted, Reference: r, Initial: true})
	}
	g.mu.subscriptions[s] = struct{}{}
	return s, nil
}

// Stop ends the subscription. A running call of the handler continues, but there are no further calls.
func (s *Subscription) Stop() {
	s.calls.Close()
	s.graph.mu.Lock()
	defer s.graph.mu.Unlock()
	delete(s.graph.mu.subscriptions, s)
}

// QueueLength returns the number of events that the handler has not handled completely.
func (s *Subscription) QueueLength() int { return s.calls.Pending() }

func (s *Subscription) push(e Event) { s.calls.Push(func() { s.handler(e) }) }
