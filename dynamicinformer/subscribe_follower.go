package dynamicinformer

import (
	"errors"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/health"
	"github.com/crdcache/crdcache/internal/informer"
)

// typeNews receives the types of a source for a subscription.
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

// settle starts or stops watching one type, so that the watched types match the selection. It is called again
// whenever a type or an informer changes, by work.
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
	case f != nil && f.stopped() && s.factory.isShutDown(): // Close follows
	case f != nil && f.stopped():
		s.leave(f, status.ReasonStopped)
		s.settle(gr) // with a new informer, for the next Start
	case f == nil && wanted:
		s.join(gr.WithVersion(version))
	case f == nil, wanted && version == current:
	case exists && t.Established && slices.Contains(t.Versions, current):
		s.leave(f, status.ReasonNotSelected) // the type still exists
	case f.over():
		s.leave(f, status.ReasonNone)
		s.settle(gr) // another version may match
	}
}

// join begins to watch a type.
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

// leave stops watching a type. No calls for it follow its return.
func (s *Subscription) leave(f *follower, reason status.Reason) {
	f.end()
	s.mu.Lock()
	delete(s.mu.follows, f.informer.gvr.GroupResource())
	s.mu.Unlock()
	f.gone(reason)
	f.handle.Release()
}

// unwind releases everything after Close.
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

// follower forwards the events of one informer to the subscriber. Marks in the handler's queue separate the
// generations, so that everything arrives in order.
type follower struct {
	*Subscription
	handle       *Handle
	informer     *Informer
	registration *informer.Registration
	unfollow     func() // ends calls of statusChanged
	// running counts the generations whose end the subscriber has not received.
	running atomic.Int32

	// generation is the generation of the current events; announced is set once the subscriber has received
	// it. After the registration only the handler's goroutine uses them.
	generation status.Generation
	announced  bool
}

var _ informer.Departed = (*follower)(nil)

// follow begins to watch a type. If the informer stops meanwhile, it retries with a new one.
func (s *Subscription) follow(gvr schema.GroupVersionResource) (*follower, error) {
	for {
		handle, err := s.factory.acquire(gvr, s.options, true)
		if err != nil {
			return nil, err
		}
		f := &follower{Subscription: s, handle: handle, informer: handle.Informer()}
		if f.unfollow, err = f.informer.health.Follow(f.statusChanged, f.join); err == nil {
			return f, nil
		}
		handle.Release()
		if !errors.Is(err, ErrStopped) {
			return nil, err
		}
	}
}

// join adds the handler, which first receives the existing objects. The caller holds the status, so no
// generation begins or ends meanwhile.
func (f *follower) join(now health.Status) error {
	if health.Runs(now) {
		f.generation = health.GenerationOf(now)
		f.running.Add(1)
	}
	registration, err := f.informer.core.AddEventHandler(f)
	if err != nil {
		return err
	}
	f.registration = registration.(*informer.Registration)
	if health.Runs(now) {
		f.registration.Mark(f.announce) // for a type without objects
	}
	if health.Filled(now) {
		f.registration.Mark(f.synced)
	}
	return nil
}

// statusChanged marks the begin and end of generations in the queue.
func (f *follower) statusChanged(before, after health.Status) {
	ended, reason, started, synced := health.GenerationsBetween(before, after)
	if ended && after.State != status.Stopped {
		f.registration.Mark(func() {
			f.gone(reason)
			f.running.Add(-1)
			f.resettle()
		})
	}
	if started {
		f.running.Add(1)
		g := health.GenerationOf(after)
		f.registration.Mark(func() {
			f.generation = g
			f.announce()
		})
	}
	if synced {
		f.registration.Mark(f.synced)
	}
	if !health.Runs(after) {
		f.resettle()
	}
}

func (f *follower) resettle() {
	gr := f.informer.gvr.GroupResource()
	f.work.Push(func() { f.settle(gr) })
}

// over reports whether the type is gone and all its events have been handled.
func (f *follower) over() bool {
	now := f.informer.Status()
	return f.running.Load() == 0 && health.Absent(now)
}

// stopped reports whether the informer has stopped.
func (f *follower) stopped() bool { return f.informer.Status().State == status.Stopped }

// end removes the handler and waits until it is no longer called.
func (f *follower) end() {
	f.unfollow()
	// It only fails for a registration of another kind.
	_ = f.informer.core.RemoveEventHandler(f.registration)
	<-f.registration.ShutdownChan()
}

// gvr returns the type of the current objects.
func (f *follower) gvr() schema.GroupVersionResource {
	return f.generation.GVR.GroupResource().WithVersion(f.generation.Version)
}

// announce reports the begin of a generation once, before its events.
func (f *follower) announce() {
	if f.announced {
		return
	}
	f.announced = true
	if f.subscriber.OnStarted != nil {
		f.call(func() { f.subscriber.OnStarted(f.generation) })
	}
}

func (f *follower) synced() {
	if f.subscriber.OnSynced != nil {
		f.call(func() { f.subscriber.OnSynced(f.generation) })
	}
}

// gone reports the end of a generation.
func (f *follower) gone(reason status.Reason) {
	if f.announced && f.subscriber.OnGone != nil {
		f.call(func() { f.subscriber.OnGone(f.generation, reason) })
	}
	f.announced = false
}

// OnAdd implements cache.ResourceEventHandler.
func (f *follower) OnAdd(obj any, inInitialList bool) {
	f.announce()
	if u, ok := obj.(*unstructured.Unstructured); ok && f.subscriber.OnAdd != nil {
		f.call(func() { f.subscriber.OnAdd(f.gvr(), u, inInitialList) })
	}
}

// OnUpdate implements cache.ResourceEventHandler.
func (f *follower) OnUpdate(before, after any) {
	f.announce()
	b, _ := before.(*unstructured.Unstructured)
	if a, ok := after.(*unstructured.Unstructured); ok && f.subscriber.OnUpdate != nil {
		f.call(func() { f.subscriber.OnUpdate(f.gvr(), b, a) })
	}
}

// OnDelete implements cache.ResourceEventHandler.
func (f *follower) OnDelete(obj any) {
	f.announce()
	final := true
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj, final = tombstone.Obj, false
	}
	if u, ok := obj.(*unstructured.Unstructured); ok && f.subscriber.OnDelete != nil {
		f.call(func() { f.subscriber.OnDelete(f.gvr(), u, final) })
	}
}

// OnDeparted implements informer.Departed.
func (f *follower) OnDeparted(obj any) {
	f.announce()
	if u, ok := obj.(*unstructured.Unstructured); ok && f.subscriber.OnDeparted != nil {
		f.call(func() { f.subscriber.OnDeparted(f.gvr(), u) })
	}
}
