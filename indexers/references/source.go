package references

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/internal/naming"
)

// Informer is the part of an informer that a graph needs.
type Informer interface {
	AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
	RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error
}

// statusInformer is an informer with a status, such as a dynamicinformer.Informer.
type statusInformer interface {
	Status() status.Status
	StatusChange() (status.Status, <-chan struct{})
	Flush(context.Context) error
	Stopped() <-chan struct{}
}

// InformerSource describes an informer to add to a graph.
type InformerSource struct {
	// Type is the type of the objects.
	Type Type
	// References are the declared references of the objects; owner references are implied.
	References []*indexers.Reference
	// Informer provides the objects.
	Informer Informer
	// Namespaces reports whether the informer follows a namespace; nil means all. It must be a pure function
	// and is called with a lock held. A missing object does not count as deleted while a
	// dynamicinformer.Informer is Degraded because it may not read every namespace.
	Namespaces func(namespace string) bool
	// HasSelector is set if the informer has a selector, so that a missing object may exist. It need not be
	// set for a shard of a dynamicinformer.Informer.
	HasSelector bool
}

// Registration is a source that was added to a graph.
type Registration struct{ source *source }

// Synced returns a channel that is closed when the graph has received the informer's initial objects.
func (r *Registration) Synced() <-chan struct{} { return r.source.syncedCh }

// Stopped returns a channel that is closed by Stop and by Graph.Close.
func (r *Registration) Stopped() <-chan struct{} { return r.source.stopped }

// Stop removes the source with the objects that only it has. Further calls have no effect.
func (r *Registration) Stop() { r.source.stop() }

// source is an InformerSource of a graph. The lock of the graph guards its fields.
type source struct {
	InformerSource
	graph     *Graph
	extractor extractor
	syncedCh  chan struct{} // closed after the sync
	stopped   chan struct{} // closed by stop

	registration     cache.ResourceEventHandlerRegistration // nil until AddEventHandler returns
	typeNode         *typeNode
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
	for _, r := range s.extractor.references {
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
func (g *Graph) Add(src InformerSource) (*Registration, error) {
	if src.Type.Resource == "" || src.Type.Kind == "" {
		return nil, fmt.Errorf("references: a source needs both the resource and the kind of its type, got %+v", src.Type)
	}
	if src.Informer == nil {
		return nil, errors.New("references: a source needs an informer")
	}
	added := &source{InformerSource: src, graph: g, extractor: newExtractor(src.References),
		syncedCh: make(chan struct{}), stopped: make(chan struct{}), objects: map[objectKey]objectState{}}
	if err := added.checkStored(); err != nil {
		return nil, fmt.Errorf("references: %s: %w", src.Type.Resource, err)
	}
	closed := false
	g.update(func(c *graphChange) {
		if closed = c.mu.closed; closed {
			return
		}
		var recheckedEdges []*edge
		added.typeNode, recheckedEdges = c.mu.register(src.Type)
		c.touched = append(c.touched, recheckedEdges...)
		added.typeNode.sources[added] = struct{}{}
		c.mu.sources[added] = struct{}{}
	})
	if closed {
		return nil, ErrClosed
	}
	registration, err := src.Informer.AddEventHandler(added)
	if err != nil {
		added.remove()
		return nil, fmt.Errorf("references: %s: %w", src.Type.Resource, err)
	}
	g.update(func(*graphChange) {
		if closed = added.removed; !closed {
			added.registration = registration
		}
	})
	if closed {
		_ = src.Informer.RemoveEventHandler(registration)
		return nil, ErrClosed
	}
	go added.followSync(registration.HasSyncedChecker().Done()) // ends with stop or with the informer
	return &Registration{added}, nil
}

func (s *source) isComplete(namespace string) bool {
	return !s.HasSelector && !s.isSharded() && s.incompleteReason == "" &&
		(s.Namespaces == nil || !s.Type.Namespaced || s.Namespaces(namespace))
}

// isSharded reports whether the informer follows a shard, so that a missing object may exist.
func (s *source) isSharded() bool {
	informer, ok := s.Informer.(statusInformer)
	return ok && informer.Status().Shard != nil
}

// followSync records the sync of the source, and then the completeness of its informer.
func (s *source) followSync(synced <-chan struct{}) {
	select {
	case <-s.stopped:
		return
	case <-synced:
	}
	s.graph.update(func(c *graphChange) {
		if s.removed {
			return
		}
		s.synced = true
		close(s.syncedCh)
		if informer, ok := s.Informer.(statusInformer); ok {
			s.incarnation = informer.Status().Incarnation
		}
		s.updateCompleteness(c)
		c.touched = append(c.touched, s.typeNode.incoming()...)
		c.wakeWaiters()
	})
	if informer, ok := s.Informer.(statusInformer); ok {
		s.followStatus(informer)
	}
}

// followStatus follows the status of an informer until the source or the informer ends. A type that was
// removed and installed again is complete when the handler has received all its objects.
func (s *source) followStatus(informer statusInformer) {
	ctx := wait.ContextForChannel(s.stopped)
	flushedIncarnation := s.incarnation // only changed below from now on
	for {
		current, changed := informer.StatusChange()
		if current.State == status.Synced && current.Incarnation != flushedIncarnation &&
			informer.Flush(ctx) == nil {
			flushedIncarnation = current.Incarnation
		}
		s.graph.update(func(c *graphChange) {
			s.incarnation = flushedIncarnation
			s.updateCompleteness(c)
		})
		select {
		case <-s.stopped:
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
func (s *source) updateCompleteness(c *graphChange) {
	informer, ok := s.Informer.(statusInformer)
	if !ok || s.removed {
		return
	}
	reason := ""
	switch current := informer.Status(); {
	case current.State == status.Degraded && current.Reason == status.ReasonForbidden:
		reason = "not all of them may be read"
	case current.State == status.Gone || current.State == status.Pending:
		reason = "the server does not serve them now"
	case current.Incarnation != s.incarnation:
		reason = reasonNotRead
	}
	if reason != s.incompleteReason {
		s.incompleteReason = reason
		c.touched = append(c.touched, s.typeNode.incoming()...)
	}
}

const reasonNotRead = "they have not been read yet"

// wakeWaiters wakes up WaitForSync.
func (c *graphChange) wakeWaiters() {
	close(c.mu.changed)
	c.mu.changed = make(chan struct{})
}

// stop removes the source once.
func (s *source) stop() {
	if s.remove() && s.registration != nil {
		_ = s.Informer.RemoveEventHandler(s.registration) // fails only for a stopped informer
	}
}

// remove removes the source and its objects from the graph. It returns false if that has been done.
func (s *source) remove() (isFirst bool) {
	s.graph.update(func(c *graphChange) {
		if s.removed {
			return
		}
		isFirst, s.removed = true, true
		close(s.stopped)
		delete(s.typeNode.sources, s)
		delete(c.mu.sources, s)
		for key := range s.objects {
			s.setObject(c, key, nil)
		}
		c.touched = append(c.touched, s.typeNode.incoming()...)
		c.wakeWaiters()
	})
	return isFirst
}

// setObject sets the source's object of a key; nil removes it.
func (s *source) setObject(c *graphChange, key objectKey, next *objectState) {
	old, existed := s.objects[key]
	n := s.typeNode.nodeAt(key)
	if next != nil {
		if n.addHolder(next.uid) {
			c.touchIncoming(n)
		}
		for _, id := range next.outgoing {
			c.addReference(n, id)
		}
		s.objects[key] = *next
	} else {
		delete(s.objects, key)
	}
	if existed {
		if n.removeHolder(old.uid) {
			c.touchIncoming(n)
		}
		for _, id := range old.outgoing {
			e := n.outgoing[id]
			e.sourceCount--
			c.touched = append(c.touched, e)
		}
	}
	n.removeIfUnused()
}

// TakesUndecoded makes a dynamicinformer.Informer pass packed objects, as with dynamicinformer.MetadataOnly.
func (s *source) TakesUndecoded() {}

// OnAdd implements cache.ResourceEventHandler.
func (s *source) OnAdd(obj any, _ bool) { s.upsert(obj) }

// OnUpdate implements cache.ResourceEventHandler.
func (s *source) OnUpdate(_, obj any) { s.upsert(obj) }

func (s *source) upsert(obj any) {
	object, ok := s.extractor.read(obj)
	if !ok {
		return
	}
	s.graph.update(func(c *graphChange) {
		if !s.removed {
			s.setObject(c, object.objectKey, &object.objectState)
		}
	})
}

// OnDelete implements cache.ResourceEventHandler.
func (s *source) OnDelete(obj any) {
	key, ok := keyOf(obj)
	if !ok {
		return
	}
	s.graph.update(func(c *graphChange) {
		if _, exists := s.objects[key]; exists && !s.removed {
			s.updateCompleteness(c) // the deletion may be caused by losing access to the namespace
			s.setObject(c, key, nil)
		}
	})
}

// OnLeftShard implements sharding.LeftShardHandler. References to an object that left a shard do not
// dangle, see isComplete.
func (s *source) OnLeftShard(obj any) { s.OnDelete(obj) }

// keyOf returns the key of a deleted object, which may be a tombstone.
func keyOf(obj any) (objectKey, bool) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		namespace, name := naming.SplitKey(tombstone.Key)
		return objectKey{namespace, name}, true
	}
	object, ok := readMetadata(obj)
	return object.objectKey, ok
}
