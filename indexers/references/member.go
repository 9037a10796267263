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
	"github.com/crdcache/crdcache/internal/newer"
)

// Informer is the part of an informer that a graph needs.
type Informer interface {
	AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
	RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error
}

// Member is an informer of a graph.
type Member struct {
	// Type is the type of the objects.
	Type Type
	// References are the declared references of the objects; owner references are implied.
	References []*indexers.Reference
	// Informer provides the objects.
	Informer Informer
	// Namespaces reports whether the informer follows a namespace; nil means all. It must be a pure function
	// and is called with a lock held. A missing object does not count as deleted while a
	// *dynamicinformer.Informer is Degraded because it may not read every namespace.
	Namespaces func(namespace string) bool
	// Selected is set if the informer has a selector, so that a missing object may exist. It need not be set
	// for a shard of a *dynamicinformer.Informer.
	Selected bool
}

// Membership is a member that was added to a graph.
type Membership struct{ member *member }

// Synced returns a channel that is closed when the graph has received the informer's initial objects.
func (m *Membership) Synced() <-chan struct{} { return m.member.syncedCh }

// Stopped returns a channel that is closed by Stop and by Graph.Close.
func (m *Membership) Stopped() <-chan struct{} { return m.member.ended }

// Stop removes the member with the objects that only it has. Further calls have no effect.
func (m *Membership) Stop() { m.member.stop() }

// member is a Member of a graph. The lock of the graph guards its fields.
type member struct {
	Member
	graph    *Graph
	extract  extractor
	syncedCh chan struct{} // closed after the sync
	ended    chan struct{} // closed by stop

	registration     cache.ResourceEventHandlerRegistration // nil until AddEventHandler returns
	kind             *kind
	synced           bool
	generation       int    // generation of the informer whose objects the handler has received completely
	incompleteReason string // why objects may be missing; empty if complete
	removed          bool
	objects          map[objectKey]objectState
}

// objectState is an object of a member.
type objectState struct {
	uid string
	out []edgeID
}

// Add adds an informer until it is stopped or the graph is closed, before or after the informer has synced.
// One type can have several members with different objects or references.
//
// To change a member, add the new one and stop the old one after the new one has synced. No reference starts
// or stops dangling in between.
func (g *Graph) Add(m Member) (*Membership, error) {
	if m.Type.Resource == "" || m.Type.Kind == "" {
		return nil, fmt.
			Errorf("references: a member needs both the resource and the kind of its type, got %+v",
				m.Type)
	}
	if m.Informer == nil {
		return nil, errors.New("references: a member needs an informer")
	}
	one := &member{Member: m, graph: g, extract: newExtractor(m.References), syncedCh: make(chan struct{}),
		ended: make(chan struct{}), objects: map[objectKey]objectState{}}
	closed := false
	g.do(func(c *change) {
		if closed = c.mu.closed; closed {
			return
		}
		var moved []*edge
		one.kind, moved = c.mu.register(m.Type)
		c.touched = append(c.touched, moved...)
		one.kind.members[one] = struct{}{}
		c.mu.members[one] = struct{}{}
	})
	if closed {
		return nil, ErrClosed
	}
	var handler cache.ResourceEventHandler = one
	if _, ours := m.Informer.(*dynamicinformer.Informer); ours {
		handler = dynamicinformer.MetadataOnly(handler) // references are read from the JSON
	}
	registration, err := m.Informer.AddEventHandler(handler)
	if err != nil {
		one.remove()
		return nil, fmt.Errorf("references: %s: %w", m.Type.Resource, err)
	}
	if !one.registered(registration) {
		_ = m.Informer.RemoveEventHandler(registration)
		return nil, ErrClosed
	}
	go one.follow(newer.Done(registration, one.ended)) // ends with stop or with the informer
	return &Membership{one}, nil
}

// covers reports whether the member has all objects of a namespace.
func (m *member) covers(namespace string) bool {
	return !m.Selected && !m.isSharded() && m.incompleteReason == "" &&
		(m.Namespaces == nil || !m.Type.Namespaced ||
			m.Namespaces(namespace))
}

// isSharded reports whether the informer follows a shard, so that a missing object may exist. That can
// change.
func (m *member) isSharded() bool {
	ours, ok := m.Informer.(*dynamicinformer.Informer)
	return ok && ours.Shard() != nil
}

// follow records the sync of the member, and then the completeness of its informer.
func (m *member) follow(synced <-chan struct{}) {
	select {
	case <-m.ended:
		return
	case <-synced:
	}
	m.graph.do(func(c *change) {
		if m.removed {
			return
		}
		m.synced = true
		close(m.syncedCh)
		if ours, ok := m.Informer.(*dynamicinformer.Informer); ok {
			m.generation = ours.Status().Generation
		}
		m.updateCompleteness(c)
		c.touched = append(c.touched, m.kind.incoming()...)
		c.wake()
	})
	if ours, ok := m.Informer.(*dynamicinformer.Informer); ok {
		m.followStatus(ours)
	}
}

// followStatus follows the status of an informer until the member or the informer ends. A type that was
// removed and installed again is complete when the handler has received all its objects.
func (m *member) followStatus(ours *dynamicinformer.Informer) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // ended by cancel
		select {
		case <-m.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	heard := m.generation // only changed below from now on
	for {
		current, changed := ours.StatusChange()
		if current.State == status.Synced && current.Generation != heard && ours.Flush(ctx) == nil {
			heard = current.Generation
		}
		m.graph.do(func(c *change) {
			m.generation = heard
			m.updateCompleteness(c)
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

// updateCompleteness records whether the informer has all objects that it should follow. If the informer may
// not read every namespace, it continues with the readable ones. If its type is not served, it has no
// objects. In both cases missing objects do not count as deleted.
func (m *member) updateCompleteness(c *change) {
	ours, ok := m.Informer.(*dynamicinformer.Informer)
	if !ok || m.removed {
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
	if lack != m.incompleteReason {
		m.incompleteReason = lack
		c.touched = append(c.touched, m.kind.incoming()...)
	}
}

// notRead is the reason of a member that has not synced.
const notRead = "they have not been read yet"

// wake wakes up WaitForSync.
func (c *change) wake() {
	close(c.mu.changed)
	c.mu.changed = make(chan struct{})
}

// registered stores a registration, for stop. It returns false if the member was removed.
func (m *member) registered(r cache.ResourceEventHandlerRegistration) bool {
	m.graph.mu.Lock()
	defer m.graph.mu.Unlock()
	if !m.removed {
		m.registration = r
	}
	return !m.removed
}

// stop removes the member once.
func (m *member) stop() {
	if m.remove() && m.registration != nil {
		_ = m.Informer.RemoveEventHandler(m.registration) // fails only for a stopped informer
	}
}

// remove removes the member and its objects from the graph. It returns false if that has been done.
func (m *member) remove() (first bool) {
	m.graph.do(func(c *change) {
		if m.removed {
			return
		}
		first, m.removed = true, true
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

// put sets the member's object of a key; nil removes it.
func (m *member) put(c *change, at objectKey, next *objectState) {
	old, had := m.objects[at]
	n := m.kind.node(at)
	if next != nil {
		if n.addHolder(next.uid) {
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
		if n.removeHolder(old.uid) {
			c.touch(n)
		}
		for _, id := range old.out {
			c.release(n, id)
		}
	}
	n.drop()
}

// OnAdd implements cache.ResourceEventHandler.
func (m *member) OnAdd(obj any, _ bool) { m.upsert(obj) }

// OnUpdate implements cache.ResourceEventHandler.
func (m *member) OnUpdate(_, obj any) { m.upsert(obj) }

func (m *member) upsert(obj any) {
	object, ok := m.extract.read(obj)
	if !ok {
		return
	}
	m.graph.do(func(c *change) {
		if !m.removed {
			m.put(c, object.objectKey, &object.objectState)
		}
	})
}

// OnDelete implements cache.ResourceEventHandler.
func (m *member) OnDelete(obj any) {
	at, ok := keyOf(obj)
	if !ok {
		return
	}
	m.graph.do(func(c *change) {
		if _, have := m.objects[at]; have && !m.removed {
			m.updateCompleteness(c) // the deletion may be caused by losing access to the namespace
			m.put(c, at, nil)
		}
	})
}

// OnDeparted implements dynamicinformer.Departed. References to an object that left a shard do not dangle,
// see covers.
func (m *member) OnDeparted(obj any) { m.OnDelete(obj) }

// keyOf returns the key of a deleted object, which may be a tombstone.
func keyOf(obj any) (objectKey, bool) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		namespace, name, ok := strings.Cut(tombstone.Key, "/")
		if !ok {
			namespace, name = "", tombstone.Key
		}
		return objectKey{namespace, name}, true
	}
	object, ok := identify(obj)
	return object.objectKey, ok
}
