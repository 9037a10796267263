package references

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/crdcache/crdcache/internal/queue"
)

// ErrClosed is returned by methods of a closed graph.
var ErrClosed = errors.New("references: the graph has been closed")

// Graph tracks objects and the references between them.
type Graph struct {
	mu struct {
		sync.Mutex
		typeNodes
		sources       map[*source]struct{}
		dangling      map[*edge]struct{}
		edges         int
		subscriptions map[*Subscription]struct{}
		explainType   func(Type) string
		// changed is closed and replaced when a source has synced or was removed.
		changed chan struct{}
		closed  bool
	}
}

// New returns a graph without sources.
func New() *Graph {
	g := &Graph{}
	g.mu.typeNodes = typeNodes{map[typeName]*typeNode{}, map[typeName]*typeNode{}}
	g.mu.sources = map[*source]struct{}{}
	g.mu.dangling = map[*edge]struct{}{}
	g.mu.subscriptions = map[*Subscription]struct{}{}
	g.mu.changed = make(chan struct{})
	return g
}

// Close removes all sources and ends all subscriptions without events.
func (g *Graph) Close() {
	g.mu.Lock()
	g.mu.closed = true
	sources, subscriptions := slices.Collect(maps.Keys(g.mu.sources)),
		slices.Collect(maps.Keys(g.mu.subscriptions))
	clear(g.mu.subscriptions)
	g.mu.Unlock()
	for _, s := range subscriptions {
		s.Stop()
	}
	for _, src := range sources {
		src.stop()
	}
}

// graphChange is one change of the graph under its lock. Touched references are evaluated at the end, so that
// intermediate states cause no events.
type graphChange struct {
	*Graph
	touched []*edge
}

func (c *graphChange) touchIncoming(n *node) {
	for e := n.firstIncoming; e != nil; e = e.next {
		c.touched = append(c.touched, e)
	}
}

// addReference adds a reference of an object for one more source.
func (c *graphChange) addReference(from *node, id edgeID) {
	e := from.outgoing[id]
	if e == nil {
		e = &edge{edgeID: id, from: from}
		if from.outgoing == nil {
			from.outgoing = map[edgeID]*edge{}
		}
		from.outgoing[id] = e
		e.link(c.mu.forTarget(id.to))
		c.mu.edges++
	}
	e.sourceCount++
	c.touched = append(c.touched, e)
}

// evaluateTouched evaluates the touched references and notifies subscriptions.
func (c *graphChange) evaluateTouched() {
	for _, e := range c.touched {
		switch {
		case e.sourceCount == 0 && e.target == nil: // removed already
		case e.sourceCount == 0:
			c.stopDangling(e, ReferenceGone)
			delete(e.from.outgoing, e.edgeID)
			c.mu.edges--
			e.unlink()
			e.from.removeIfUnused()
		default:
			c.evaluate(e)
		}
	}
}

// evaluate compares the state of a reference with the last event.
func (c *graphChange) evaluate(e *edge) {
	switch state := e.state(); {
	case state == Dangling && !e.isDangling:
		e.isDangling = true
		c.mu.dangling[e] = struct{}{}
		c.notify(Event{Type: DanglingStarted, Reference: e.reference()})
	case state == Resolved:
		c.stopDangling(e, TargetFound)
	case state == Unknown:
		c.stopDangling(e, TargetUnknown)
	}
}

// stopDangling sends DanglingStopped, if the reference dangles.
func (c *graphChange) stopDangling(e *edge, reason Reason) {
	if !e.isDangling {
		return
	}
	e.isDangling = false
	delete(c.mu.dangling, e)
	r := e.reference()
	if reason == ReferenceGone {
		r.State = Dangling // it dangled until the end
	}
	c.notify(Event{Type: DanglingStopped, Reason: reason, Reference: r})
}

func (c *graphChange) notify(e Event) {
	for s := range c.mu.subscriptions {
		s.push(e)
	}
}

func (g *Graph) update(change func(c *graphChange)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := graphChange{Graph: g}
	change(&c)
	c.evaluateTouched()
}

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
