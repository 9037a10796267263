package dynamicinformer

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
)

// typeNews is what a subscription is told by a source of types.
type typeNews struct{ *Subscription }

var _ typesource.Listener = typeNews{}

// SetType implements typesource.Listener.
func (s typeNews) SetType(t typesource.Type) {
	s.mu.Lock()
	s.mu.types[t.GroupResource] = t
	s.mu.Unlock()
	s.work.Push(func() { s.settle(t.GroupResource) })
}

// RemoveType implements typesource.Listener.
func (s typeNews) RemoveType(gr schema.GroupResource) {
	s.mu.Lock()
	delete(s.mu.types, gr)
	s.mu.Unlock()
	s.work.Push(func() { s.settle(gr) })
}

// SetUnknown implements typesource.Listener.
func (typeNews) SetUnknown(map[schema.GroupVersion]error) {}

// SetComplete implements typesource.Listener.
func (typeNews) SetComplete() {}

// settle brings one type in line with what is selected. It compares what is with what should be, and is
// called again whenever either changes. Work calls it.
func (s *Subscription) settle(gr schema.GroupResource) {
	s.mu.Lock()
	closed, f := s.mu.closed, s.mu.follows[gr]
	t, exists := s.mu.types[gr]
	s.mu.Unlock()
	if closed {
		return
	}
	current := ""
	if f != nil {
		current = f.informer.gvr.Version
	}
	version, wanted := "", false
	if exists && t.Established {
		version, wanted = s.selection.choose(t, current)
	}
	switch {
	case f != nil && f.stopped():
		s.leave(f, status.ReasonStopped)
		s.settle(gr) // with another informer, for the next Start
	case f == nil && wanted:
		s.join(gr.WithVersion(version))
	case f == nil, wanted && version == current:
	case exists && t.Established && slices.Contains(t.Versions, current):
		s.leave(f, status.ReasonNotSelected) // it lives on
	case f.over():
		s.leave(f, status.ReasonNone)
		s.settle(gr) // another version, perhaps
	}
}

// join begins to follow a type.
func (s *Subscription) join(gvr schema.GroupVersionResource) {
	f, err := s.follow(gvr)
	if err != nil {
		// the factory is about to close the subscription
		if s.subscriber.OnError != nil && !errors.Is(err, ErrShutdown) {
			s.call(func() { s.subscriber.OnError(gvr, err) })
		}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.follows[gvr.GroupResource()] = f
}

// leave ends what follows a type. Nothing is told after it has returned.
func (s *Subscription) leave(f *follower, reason status.Reason) {
	f.end()
	s.mu.Lock()
	delete(s.mu.follows, f.informer.gvr.GroupResource())
	s.mu.Unlock()
	f.gone(reason)
	f.handle.Release()
}

// unwind ends everything, after Close.
func (s *Subscription) unwind() {
	s.mu.Lock()
	follows := s.mu.follows
	s.mu.follows = nil
	s.mu.Unlock()
	for _, f := range follows {
		f.end()
		f.handle.Release()
	}
	s.unlink()
	s.work.Close()
}
