package references

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/indexers"
)

// Informer is what a graph needs of an informer; all informers have it.
type Informer interface {
	AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
	RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error
}

// Member is an informer of a graph.
type Member struct {
	// Type is what its objects are of.
	Type Type
	// References are those that the objects make, besides owner references.
	References []*indexers.Reference
	// Informer follows the objects.
	Informer Informer
	// Namespaces tells whether the informer follows a namespace; nil stands for all. It must always say the
	// same, and is called with a lock held. While a *dynamicinformer.Informer is degraded because it may not
	// read all of them, that something is not there says nothing.
	Namespaces func(namespace string) bool
	// Selected is set when the informer follows only objects that a selector selects. That one is not there
	// says nothing then. Of a *dynamicinformer.Informer that follows a shard this need not be said.
	Selected bool
}

// Membership is an informer that a graph follows.
type Membership struct{ member *member }

// Synced is closed when the graph has heard of all objects that the informer had in the beginning.
func (m *Membership) Synced() <-chan struct{} { return m.member.heard }

// Stopped is closed by Stop, and when the graph is closed.
func (m *Membership) Stopped() <-chan struct{} { return m.member.ended }

// Stop takes all out of the graph that it knows of this informer alone. It may be called again.
func (m *Membership) Stop() { m.member.stop() }

// member is a Member of a graph. What it holds is guarded by the lock of the graph.
type member struct {
	Member
	graph   *Graph
	extract extractor
	heard   chan struct{} // closed once it has synced
	ended   chan struct{} // closed by stop

	registration cache.ResourceEventHandlerRegistration // nil until the informer has given it
	kind         *kind
	synced       bool
	generation   int    // of the informer, that the handler has heard the whole of
	lack         string // why the informer may not have all that it is to follow; empty where it has
	gone         bool
	objects      map[place]holding
}

// holding is what a member has of an object.
type holding struct {
	uid string
	out []edgeID
}

// Add makes an informer a member, until it is stopped or the graph is closed. It may be called before or
// after the informer has synced. One type may have several members, with different objects or references.
//
// To change a member, add the new one, and stop the old one when the new one has synced: nothing begins or
// ceases to dangle between.
func (g *Graph) Add(m Member) (*Membership, error) {
	if m.Type.Resource == "" || m.Type.Kind == "" {
		return nil, fmt.Errorf("references: a member needs both the resource and the kind of its type, got %+v", m.Type)
	}
	if m.Informer == nil {
		return nil, errors.New("references: a member needs an informer")
	}
	one := &member{Member: m, graph: g, extract: newExtractor(m.References), heard: make(chan struct{}),
		ended: make(chan struct{}), objects: map[place]holding{}}
	closed := false
	g.do(func(c *change) {
		if closed = c.mu.closed; closed {
			return
		}
		var moved []*edge
		one.kind, moved = c.mu.learn(m.Type)
		c.touched = append(c.touched, moved...)
		one.kind.members[one] = struct{}{}
		c.mu.members[one] = struct{}{}
	})
	if closed {
		return nil, ErrClosed
	}
	var handler cache.ResourceEventHandler = one
	if _, ours := m.Informer.(*dynamicinformer.Informer); ours {
		handler = dynamicinformer.MetadataOnly(handler) // the references are read of the JSON
	}
	registration, err := m.Informer.AddEventHandler(handler)
	if err != nil {
		one.leave()
		return nil, fmt.Errorf("references: %s: %w", m.Type.Resource, err)
	}
	if !one.registered(registration) {
		_ = m.Informer.RemoveEventHandler(registration)
		return nil, ErrClosed
	}
	go one.follow(registration.HasSyncedChecker().Done()) // ends with stop, or with the informer
	return &Membership{one}, nil
}

// covers reports whether the member has all objects of a namespace.
func (m *member) covers(namespace string) bool {
	return !m.Selected && !m.isSharded() && m.lack == "" && (m.Namespaces == nil || !m.Type.Namespaced ||
		m.Namespaces(namespace))
}

// isSharded reports whether the informer follows a shard, which may change: that an object is not there says
// nothing.
func (m *member) isSharded() bool {
	ours, ok := m.Informer.(*dynamicinformer.Informer)
	return ok && ours.Shard() != nil
}

// follow notes that the member has synced, and then what its informer has.
func (m *member) follow(synced <-chan struct{}) {
	select {
	case <-m.ended:
		return
	case <-synced:
	}
	m.graph.do(func(c *change) {
		if m.gone {
			return
		}
		m.synced = true
		close(m.heard)
		if ours, ok := m.Informer.(*dynamicinformer.Informer); ok {
			m.generation = ours.Status().Generation
		}
		m.look(c)
		c.touched = append(c.touched, m.kind.incoming()...)
		c.wake()
	})
	if ours, ok := m.Informer.(*dynamicinformer.Informer); ok {
		m.keepUp(ours)
	}
}

// keepUp follows the status of an informer until the member or the informer ends. A type that goes and comes
// back is complete when the handler has heard of all its objects.
func (m *member) keepUp(ours *dynamicinformer.Informer) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // ended by cancel
		select {
		case <-m.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	heard := m.generation // which nobody else changes from now on
	for {
		current, changed := ours.StatusChange()
		if current.State == status.Synced && current.Generation != heard && ours.Flush(ctx) == nil {
			heard = current.Generation
		}
		m.graph.do(func(c *change) {
			m.generation = heard
			m.look(c)
		})
		select {
		case <-m.ended:
			return
		case <-ours.Stopped():
			return
		case <-changed:
		}
	}
}

// look notes whether the informer has all that it is to follow. One that may not read all goes on with the
// namespaces that it may read, and one whose type is not served has nothing: what it lacks is not known to be
// missing.
func (m *member) look(c *change) {
	ours, ok := m.Informer.(*dynamicinformer.Informer)
	if !ok || m.gone {
		return
	}
	lack := ""
	switch current := ours.Status(); {
	case current.State == status.Degraded && current.Reason == status.ReasonForbidden:
		lack = "not all of them may be read"
	case current.State == status.Gone || current.State == status.Pending:
		lack = "the server does not serve them now"
	case current.Generation != m.generation:
		lack = notRead
	}
	if lack != m.lack {
		m.lack = lack
		c.touched = append(c.touched, m.kind.incoming()...)
	}
}

// notRead is what a member lacks that has not synced.
const notRead = "they have not been read yet"

// wake tells those who wait for a change of the members.
func (c *change) wake() {
	close(c.mu.changed)
	c.mu.changed = make(chan struct{})
}

// registered keeps a registration, for stop to end. It is false for a member that is gone already.
func (m *member) registered(r cache.ResourceEventHandlerRegistration) bool {
	m.graph.mu.Lock()
	defer m.graph.mu.Unlock()
	if !m.gone {
		m.registration = r
	}
	return !m.gone
}

// stop ends the membership, once.
func (m *member) stop() {
	if m.leave() && m.registration != nil {
		_ = m.Informer.RemoveEventHandler(m.registration) // which fails only for an informer that has ended
	}
}

// leave takes all out of the graph that the member has put there. It is false the second time.
func (m *member) leave() (first bool) {
	m.graph.do(func(c *change) {
		if m.gone {
			return
		}
		first, m.gone = true, true
		close(m.ended)
		delete(m.kind.members, m)
		delete(c.mu.members, m)
		for at := range m.objects {
			m.put(c, at, nil)
		}
		c.touched = append(c.touched, m.kind.incoming()...)
		c.wake()
	})
	return first
}

// put makes an object what the member has at a place; nil takes it away.
func (m *member) put(c *change, at place, next *holding) {
	old, had := m.objects[at]
	n := m.kind.node(at)
	if next != nil {
		if n.enter(next.uid) {
			c.touch(n)
		}
		for _, id := range next.out {
			c.hold(n, id)
		}
		m.objects[at] = *next
	} else {
		delete(m.objects, at)
	}
	if had {
		if n.leave(old.uid) {
			c.touch(n)
		}
		for _, id := range old.out {
			c.release(n, id)
		}
	}
	n.drop()
}

// OnAdd implements cache.ResourceEventHandler.
func (m *member) OnAdd(obj any, _ bool) { m.see(obj) }

// OnUpdate implements cache.ResourceEventHandler.
func (m *member) OnUpdate(_, obj any) { m.see(obj) }

func (m *member) see(obj any) {
	object, ok := m.extract.read(obj)
	if !ok {
		return
	}
	m.graph.do(func(c *change) {
		if !m.gone {
			m.put(c, object.place, &object.holding)
		}
	})
}

// OnDelete implements cache.ResourceEventHandler.
func (m *member) OnDelete(obj any) {
	at, ok := placeOf(obj)
	if !ok {
		return
	}
	m.graph.do(func(c *change) {
		if _, have := m.objects[at]; have && !m.gone {
			m.look(c) // it may be gone because its namespace may no longer be read
			m.put(c, at, nil)
		}
	})
}

// OnDeparted implements dynamicinformer.Departed. References to an object that has left a shard do not
// dangle: see covers.
func (m *member) OnDeparted(obj any) { m.OnDelete(obj) }

// placeOf names an object that has been deleted, of which perhaps nothing but the key is known.
func placeOf(obj any) (place, bool) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		namespace, name, ok := strings.Cut(tombstone.Key, "/")
		if !ok {
			namespace, name = "", tombstone.Key
		}
		return place{namespace, name}, true
	}
	object, ok := identify(obj)
	return object.place, ok
}
