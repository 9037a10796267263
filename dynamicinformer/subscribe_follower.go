package dynamicinformer

import (
	"errors"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/health"
	"github.com/crdcache/crdcache/internal/informer"
)

// follower passes on what one informer tells its handlers, and where generations begin and end. The latter
// come through the handler's queue as well, as marks, so that everything comes in order.
type follower struct {
	*Subscription
	handle       *Handle
	informer     *Informer
	registration *informer.Registration
	unfollow     func() // ends the calls of statusChanged
	// running counts the generations that have begun and whose end the subscriber has not been told.
	running atomic.Int32

	// generation is the one that events belong to, and announced says that the subscriber knows of it. They
	// belong to the handler's goroutine, from the registration until its end.
	generation status.Generation
	announced  bool
}

var _ informer.Departed = (*follower)(nil)

// follow begins to follow a type, with another informer if one ends meanwhile.
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

// join adds the handler, which first gets what the cache holds. No generation can begin or end meanwhile,
// because the status cannot change.
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
		f.registration.Mark(f.announce) // where there is no object to announce it
	}
	if health.Filled(now) {
		f.registration.Mark(f.synced)
	}
	return nil
}

// statusChanged takes note of a change of the status. The events of a generation are queued between its
// beginning and its end.
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

// over reports whether nothing more is to come of a type that is gone.
func (f *follower) over() bool {
	now := f.informer.Status()
	return f.running.Load() == 0 && health.Absent(now)
}

// stopped reports whether the informer has stopped for good, while the subscription goes on.
func (f *follower) stopped() bool { return f.informer.Status().State == status.Stopped }

// end takes out the handler, and waits until it is not called any more.
func (f *follower) end() {
	f.unfollow()
	// It only fails for a registration of another kind.
	_ = f.informer.core.RemoveEventHandler(f.registration)
	<-f.registration.ShutdownChan()
}

// gvr is the type of the objects that come.
func (f *follower) gvr() schema.GroupVersionResource {
	return f.generation.GVR.GroupResource().WithVersion(f.generation.Version)
}

// announce tells that a generation has begun, before anything else of it.
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

// gone tells that a generation is over.
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
