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

// InformerSource is an informer of a graph.
type InformerSource struct {
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
	// HasSelector is set if the informer has a selector, so that a missing object may exist. It need not be
	// set for a shard of a *dynamicinformer.Informer.
	HasSelector bool
}

// Registration is a source that was added to a graph.
type Registration struct{ source *source }

// Synced returns a channel that is closed when the graph has received the informer's initial objects.
func (m *Registration) Synced() <-chan struct{} { return m.source.syncedCh }

// Stopped returns a channel that is closed by Stop and by Graph.Close.
func (m *Registration) Stopped() <-chan struct{} { return m.source.stopped }

// Stop removes the source with the objects that only it has. Further calls have no effect.
func (m *Registration) Stop() { m.source.stop() }

// source is an InformerSource of a graph. The lock of the graph guards its fields.
type source struct {
	InformerSource
	graph    *Graph
	extract  extractor
	syncedCh chan struct{} // closed after the sync
	stopped  chan struct{} // closed by stop

	registration     cache.ResourceEventHandlerRegistration // nil until AddEventHandler returns
	kind             *typeNode
	synced           bool
	incarnation      int    // incarnation of the informer whose objects the handler has received completely
	incompleteReason string // why objects may be missing; empty if complete
	removed          bool
	objects          map[objectKey]objectState
}

type objectState struct {
	uid      string
	outgoing []edgeID
}

// checkStored returns an error if the informer drops a field that a reference reads.
func (s *source) checkStored() error {
	informer, ok := s.Informer.(interface{ Drops(field string) bool })
	if !ok {
		return nil
	}
	for _, r := range s.extract.references {
		for _, field := range r.Index.Fields() {
			if informer.Drops(field) {
				return fmt.Errorf("reference %q reads %s, which the cache does not store: add the field to keep, "+
					"or remove it from prune", r.Name, field)
			}
		}
	}
	return nil
}

// Add adds an informer until it is stopped or the graph is closed, before or after the informer has synced.
// One type can have several sources with different objects or references.
//
// To change a source, add the new source and stop the old one after the new one has synced. No reference
// starts or stops dangling in between.
func (g *Graph) Add(m InformerSource) (*Registration, error) {
	if m.Type.Resource == "" || m.Type.Kind == "" {
		return nil, fmt.
			Errorf("references: a source needs both the resource and the kind of its type, got %+v", m.Type)
	}
	if m.Informer == nil {
		return nil, errors.New("references: a source needs an informer")
	}
	s := &source{InformerSource: m, graph: g, extract: newExtractor(m.References),
		syncedCh: make(chan struct{}),
		stopped:  make(chan struct{}), objects: map[objectKey]objectState{}}
	if err := s.checkStored(); err != nil {
		return nil, fmt.Errorf("references: %s: %w", m.Type.Resource, err)
	}
	closed := false
	g.update(func(c *graphChange) {
		if closed = c.mu.closed; closed {
			return
		}
		var recheckedEdges []*edge
		s.kind, recheckedEdges = c.mu.register(m.Type)
		c.touched = append(c.touched, recheckedEdges...)
		s.kind.sources[s] = struct{}{}
		c.mu.sources[s] = struct{}{}
	})
	if closed {
		return nil, ErrClosed
	}
	var handler cache.ResourceEventHandler = s
	if _, isDynamic := m.Informer.(*dynamicinformer.Informer); isDynamic {
		handler = dynamicinformer.MetadataOnly(handler) // references are read from the JSON
	}
	registration, err := m.Informer.AddEventHandler(handler)
	if err != nil {
		s.remove()
		return nil, fmt.Errorf("references: %s: %w", m.Type.Resource, err)
	}
	if !s.setRegistration(registration) {
		_ = m.Informer.RemoveEventHandler(registration)
		return nil, ErrClosed
	}
	go s.follow(newer.Done(registration, s.stopped)) // ends with stop or with the informer
	return &Registration{s}, nil
}

func (m *source) isComplete(namespace string) bool {
	return !m.HasSelector && !m.isSharded() && m.incompleteReason == "" &&
		(m.Namespaces == nil || !m.Type.Namespaced || m.Namespaces(namespace))
}

// isSharded reports whether the informer follows a shard, so that a missing object may exist.
func (m *source) isSharded() bool {
	informer, ok := m.Informer.(*dynamicinformer.Informer)
	return ok && informer.Shard() != nil
}

// follow records the sync of the source, and then the completeness of its informer.
func (m *source) follow(synced <-chan struct{}) {
	select {
	case <-m.stopped:
		return
	case <-synced:
	}
	m.graph.update(func(c *graphChange) {
		if m.removed {
			return
		}
		m.synced = true
		close(m.syncedCh)
		if informer, ok := m.Informer.(*dynamicinformer.Informer); ok {
			m.incarnation = informer.Status().Incarnation
		}
		m.updateCompleteness(c)
		c.touched = append(c.touched, m.kind.incoming()...)
		c.wakeWaiters()
	})
	if informer, ok := m.Informer.(*dynamicinformer.Informer); ok {
		m.followStatus(informer)
	}
}

// followStatus follows the status of an informer until the source or the informer ends. A type that was
// removed and installed again is complete when the handler has received all its objects.
func (m *source) followStatus(informer *dynamicinformer.Informer) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // ended by cancel
		select {
		case <-m.stopped:
			cancel()
		case <-ctx.Done():
		}
	}()
	flushedIncarnation := m.incarnation // only changed below from now on
	for {
		current, changed := informer.StatusChange()
		if current.State == status.Synced && current.Incarnation != flushedIncarnation &&
			informer.Flush(ctx) == nil {
			flushedIncarnation = current.Incarnation
		}
		m.graph.update(func(c *graphChange) {
			m.incarnation = flushedIncarnation
			m.updateCompleteness(c)
		})
		select {
		case <-m.stopped:
			return
		case <-informer.Stopped():
			return
		case <-changed:
		}
	}
}

// updateCompleteness records whether the informer has all objects that it should follow. If the informer may
// not read every namespace, it continues with the readable ones. If its type is not served, it has no
// objects. In both cases missing objects do not count as deleted.
func (m *source) updateCompleteness(c *graphChange) {
	informer, ok := m.Informer.(*dynamicinformer.Informer)
	if !ok || m.removed {
		return
	}
	reason := ""
	switch current := informer.Status(); {
	case current.State == status.Degraded && current.Reason == status.ReasonForbidden:
		reason = "not all of them may be read"
	case current.State == status.Gone || current.State == status.Pending:
		reason = "the server does not serve them now"
	case current.Incarnation != m.incarnation:
		reason = reasonNotRead
	}
	if reason != m.incompleteReason {
		m.incompleteReason = reason
		c.touched = append(c.touched, m.kind.incoming()...)
	}
}

const reasonNotRead = "they have not been read yet"

// wakeWaiters wakes up WaitForSync.
func (c *graphChange) wakeWaiters() {
	close(c.mu.changed)
	c.mu.changed = make(chan struct{})
}

// setRegistration stores a registration, for stop. It returns false if the source was removed.
func (m *source) setRegistration(r cache.ResourceEventHandlerRegistration) bool {
	m.graph.mu.Lock()
	defer m.graph.mu.Unlock()
	if !m.removed {
		m.registration = r
	}
	return !m.removed
}

// stop removes the source once.
func (m *source) stop() {
	if m.remove() && m.registration != nil {
		_ = m.Informer.RemoveEventHandler(m.registration) // fails only for a stopped informer
	}
}

// remove removes the source and its objects from the graph. It returns false if that has been done.
func (m *source) remove() (first bool) {
	m.graph.update(func(c *graphChange) {
		if m.removed {
			return
		}
		first, m.removed = true, true
		close(m.stopped)
		delete(m.kind.sources, m)
		delete(c.mu.sources, m)
		for at := range m.objects {
			m.setObject(c, at, nil)
		}
		c.touched = append(c.touched, m.kind.incoming()...)
		c.wakeWaiters()
	})
	return first
}

// setObject sets the source's object of a key; nil removes it.
func (m *source) setObject(c *graphChange, at objectKey, next *objectState) {
	old, existed := m.objects[at]
	n := m.kind.nodeAt(at)
	if next != nil {
		if n.addHolder(next.uid) {
			c.touch(n)
		}
		for _, id := range next.outgoing {
			c.addReference(n, id)
		}
		m.objects[at] = *next
	} else {
		delete(m.objects, at)
	}
	if existed {
		if n.removeHolder(old.uid) {
			c.touch(n)
		}
		for _, id := range old.outgoing {
			c.removeReference(n, id)
		}
	}
	n.removeIfUnused()
}

// OnAdd implements cache.ResourceEventHandler.
func (m *source) OnAdd(obj any, _ bool) { m.upsert(obj) }

// OnUpdate implements cache.ResourceEventHandler.
func (m *source) OnUpdate(_, obj any) { m.upsert(obj) }

func (m *source) upsert(obj any) {
	object, ok := m.extract.read(obj)
	if !ok {
		return
	}
	m.graph.update(func(c *graphChange) {
		if !m.removed {
			m.setObject(c, object.objectKey, &object.objectState)
		}
	})
}

// OnDelete implements cache.ResourceEventHandler.
func (m *source) OnDelete(obj any) {
	at, ok := keyOf(obj)
	if !ok {
		return
	}
	m.graph.update(func(c *graphChange) {
		if _, exists := m.objects[at]; exists && !m.removed {
			m.updateCompleteness(c) // the deletion may be caused by losing access to the namespace
			m.setObject(c, at, nil)
		}
	})
}

// OnLeftShard implements sharding.LeftShardHandler. References to an object that left a shard do not
// dangle, see isComplete.
func (m *source) OnLeftShard(obj any) { m.OnDelete(obj) }

// keyOf returns the key of a deleted object, which may be a tombstone.
func keyOf(obj any) (objectKey, bool) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		namespace, name, ok := strings.Cut(tombstone.Key, "/")
		if !ok {
			namespace, name = "", tombstone.Key
		}
		return objectKey{namespace, name}, true
	}
	object, ok := readMetadata(obj)
	return object.objectKey, ok
}
