package references

import (
	"errors"
	"maps"
	"slices"
	"sync"
)

// ErrClosed is returned for a graph after Close.
var ErrClosed = errors.New("references: the graph has been closed")

// Graph follows objects and the references between them.
type Graph struct {
	mu struct {
		sync.Mutex
		kinds
		members       map[*member]struct{}
		dangling      map[*edge]struct{}
		edges         int
		subscriptions map[*Subscription]struct{}
		why           func(Type) string
		// changed is closed, and replaced, when a member has synced or gone.
		changed chan struct{}
		closed  bool
	}
}

// New returns a graph without members.
func New() *Graph {
	g := &Graph{}
	g.mu.kinds = newKinds()
	g.mu.members = map[*member]struct{}{}
	g.mu.dangling = map[*edge]struct{}{}
	g.mu.subscriptions = map[*Subscription]struct{}{}
	g.mu.changed = make(chan struct{})
	return g
}

// Close removes all members and ends all subscriptions, without further events.
func (g *Graph) Close() {
	g.mu.Lock()
	g.mu.closed = true
	members, subscriptions := slices.Collect(maps.Keys(g.mu.members)),
		slices.Collect(maps.Keys(g.mu.subscriptions))
	clear(g.mu.subscriptions)
	g.mu.Unlock()
	for _, s := range subscriptions {
		s.Stop()
	}
	for _, m := range members {
		m.stop()
	}
}

// change is one change of the graph, under its lock: what it touched is settled at the end, so that nobody is
// told of what lies between.
type change struct {
	*Graph
	touched []*edge
}

// touch notes all references to a node.
func (c *change) touch(n *node) {
	for e := n.in; e != nil; e = e.next {
		c.touched = append(c.touched, e)
	}
}

// hold makes a reference of an object, for one more member.
func (c *change) hold(from *node, id edgeID) {
	e := from.out[id]
	if e == nil {
		e = &edge{edgeID: id, from: from}
		if from.out == nil {
			from.out = map[edgeID]*edge{}
		}
		from.out[id] = e
		e.lead(c.mu.of(id.to))
		c.mu.edges++
	}
	e.holders++
	c.touched = append(c.touched, e)
}

// release is the opposite.
func (c *change) release(from *node, id edgeID) {
	e := from.out[id]
	e.holders--
	c.touched = append(c.touched, e)
}

// settle finds out what became of the references that were touched, and tells the subscriptions.
func (c *change) settle() {
	for _, e := range c.touched {
		switch {
		case e.holders == 0 && e.node == nil: // settled already
		case e.holders == 0:
			c.resolve(e, ReferenceGone)
			delete(e.from.out, e.edgeID)
			c.mu.edges--
			e.cut()
			e.from.drop()
		default:
			c.judge(e)
		}
	}
}

// judge compares the state of a reference with what was told of it.
func (c *change) judge(e *edge) {
	switch state := e.state(); {
	case state == Dangling && !e.dangling:
		e.dangling = true
		c.mu.dangling[e] = struct{}{}
		c.tell(Event{Type: Started, Reference: e.reference()})
	case state == Resolved:
		c.resolve(e, TargetFound)
	case state == Unknown:
		c.resolve(e, TargetUnknown)
	}
}

// resolve ends the dangling of a reference, if it dangles.
func (c *change) resolve(e *edge, reason Reason) {
	if !e.dangling {
		return
	}
	e.dangling = false
	delete(c.mu.dangling, e)
	r := e.reference()
	if reason == ReferenceGone {
		r.State = Dangling // to the end
	}
	c.tell(Event{Type: Stopped, Reason: reason, Reference: r})
}

func (c *change) tell(e Event) {
	for s := range c.mu.subscriptions {
		s.push(e)
	}
}

// do makes one change.
func (g *Graph) do(f func(c *change)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := change{Graph: g}
	f(&c)
	c.settle()
}
