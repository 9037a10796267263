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

// typeListener receives the types of a source for a subscription.
type typeListener struct{ *Subscription }

var _ typesource.Listener = typeListener{}

func (s typeListener) SetType(t typesource.Type) {
	s.mu.Lock()
	s.mu.types[t.GroupResource] = t
	s.mu.Unlock()
	s.reconcileQueue.Push(func() { s.reconcile(t.GroupResource) })
}

func (s typeListener) RemoveType(gr schema.GroupResource) {
	s.mu.Lock()
	delete(s.mu.types, gr)
	s.mu.Unlock()
	s.reconcileQueue.Push(func() { s.reconcile(gr) })
}

func (typeListener) SetUnknown(map[schema.GroupVersion]error) {}

func (typeListener) SetComplete() {}

// reconcile starts or stops watching one type, so that the watched types match the selection. It is called
// again by reconcileQueue whenever a type or an informer changes.
func (s *Subscription) reconcile(gr schema.GroupResource) {
	s.mu.Lock()
	closed, f := s.mu.closed, s.mu.followers[gr]
	t, exists := s.mu.types[gr]
	s.mu.Unlock()
	if closed {
		return
	}
	current := ""
	if f != nil {
		current = f.informer.gvr.Version
	}
	version, selected := "", false
	if exists && t.Established {
		version, selected = s.selection.chooseVersion(t, current)
	}
	switch {
	case f != nil && f.isStopped() && s.factory.isShutDown(): // Close follows
	case f != nil && f.isStopped():
		s.stopFollower(f, status.ReasonStopped)
		s.reconcile(gr) // with a new informer, for the next Start
	case f == nil && selected:
		s.startFollower(gr.WithVersion(version))
	case f == nil, selected && version == current:
	case exists && t.Established && slices.Contains(slices.Concat(t.Versions, t.ListOnly), current):
		s.stopFollower(f, status.ReasonNotSelected) // the type still exists
	case f.hasEnded():
		s.stopFollower(f, status.ReasonNone)
		s.reconcile(gr) // another version may match
	}
}

// startFollower begins to watch a type.
func (s *Subscription) startFollower(gvr schema.GroupVersionResource) {
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
	s.mu.followers[gvr.GroupResource()] = f
}

// stopFollower stops watching a type. No calls for it follow its return.
func (s *Subscription) stopFollower(f *follower, reason status.Reason) {
	f.removeHandler()
	s.mu.Lock()
	delete(s.mu.followers, f.informer.gvr.GroupResource())
	s.mu.Unlock()
	f.reportGone(reason)
	f.handle.Release()
}

// releaseAll releases everything after Close.
func (s *Subscription) releaseAll() {
	s.mu.Lock()
	followers := s.mu.followers
	s.mu.followers = nil
	s.mu.Unlock()
	for _, f := range followers {
		f.removeHandler()
		f.handle.Release()
	}
	s.factory.removeSubscription(s)
	s.reconcileQueue.Close()
}

// follower forwards the events of one informer to the subscriber. Marks in the handler's queue separate the
// incarnations, so that everything arrives in order.
type follower struct {
	*Subscription
	handle       *Handle
	informer     *Informer
	registration *informer.Registration
	unfollow     func() // ends calls of statusChanged
	// openIncarnations is the number of incarnations whose end the subscriber has not received yet.
	openIncarnations atomic.Int32

	// incarnation is the incarnation of the current events; announced is set once the subscriber has received
	// it. After the registration only the handler's goroutine uses them.
	incarnation status.Incarnation
	announced   bool
}

var _ informer.LeftShardHandler = (*follower)(nil)

// follow begins to watch a type. If the informer stops meanwhile, it retries with a new one.
func (s *Subscription) follow(gvr schema.GroupVersionResource) (*follower, error) {
	for {
		handle, err := s.factory.acquire(gvr, s.options, true)
		if err != nil {
			return nil, err
		}
		f := &follower{Subscription: s, handle: handle, informer: handle.Informer()}
		if f.unfollow, err = f.informer.health.Follow(f.statusChanged, f.addHandler); err == nil {
			return f, nil
		}
		handle.Release()
		if !errors.Is(err, ErrStopped) {
			return nil, err
		}
	}
}

// addHandler adds the handler, which first receives the existing objects. The caller holds the status, so no
// incarnation begins or ends meanwhile.
func (f *follower) addHandler(now health.Status) error {
	if health.IsRunning(now) {
		f.incarnation = health.IncarnationOf(now)
		f.openIncarnations.Add(1)
	}
	registration, err := f.informer.core.AddEventHandler(f)
	if err != nil {
		return err
	}
	f.registration = registration.(*informer.Registration)
	if health.IsRunning(now) {
		f.registration.Mark(f.reportStarted) // for a type without objects
	}
	if health.IsFilled(now) {
		f.registration.MarkFilled(f.reportSynced)
	}
	return nil
}

// statusChanged marks the begin and end of incarnations in the queue.
func (f *follower) statusChanged(before, after health.Status) {
	ended, reason, started, synced := health.IncarnationsBetween(before, after)
	if ended && after.State != status.Stopped {
		f.registration.Mark(func() {
			f.reportGone(reason)
			f.openIncarnations.Add(-1)
			f.requestReconcile()
		})
	}
	if started {
		f.openIncarnations.Add(1)
		incarnation := health.IncarnationOf(after)
		f.registration.Mark(func() {
			f.incarnation = incarnation
			f.reportStarted()
		})
	}
	if synced {
		f.registration.Mark(f.reportSynced)
	}
	if !health.IsRunning(after) {
		f.requestReconcile()
	}
}

func (f *follower) requestReconcile() {
	gr := f.informer.gvr.GroupResource()
	f.reconcileQueue.Push(func() { f.reconcile(gr) })
}

// hasEnded reports whether the type was deleted and all its events have been handled.
func (f *follower) hasEnded() bool {
	now := f.informer.Status()
	return f.openIncarnations.Load() == 0 && health.Absent(now)
}

// isStopped reports whether the informer has stopped.
func (f *follower) isStopped() bool { return f.informer.Status().State == status.Stopped }

// removeHandler removes the handler and waits until it is no longer called.
func (f *follower) removeHandler() {
	f.unfollow()
	// It only fails for a registration of another kind.
	_ = f.informer.core.RemoveEventHandler(f.registration)
	<-f.registration.ShutdownChan()
}

// gvr returns the type of the current objects.
func (f *follower) gvr() schema.GroupVersionResource {
	return f.incarnation.GVR.GroupResource().WithVersion(f.incarnation.Version)
}

// reportStarted reports the begin of an incarnation once, before its events.
func (f *follower) reportStarted() {
	if f.announced {
		return
	}
	f.announced = true
	if f.subscriber.OnStarted != nil {
		f.call(func() { f.subscriber.OnStarted(f.incarnation) })
	}
}

func (f *follower) reportSynced() {
	if f.subscriber.OnSynced != nil {
		f.call(func() { f.subscriber.OnSynced(f.incarnation) })
	}
}

// reportGone reports the end of an incarnation.
func (f *follower) reportGone(reason status.Reason) {
	if f.announced && f.subscriber.OnGone != nil {
		f.call(func() { f.subscriber.OnGone(f.incarnation, reason) })
	}
	f.announced = false
}

func (f *follower) OnAdd(obj any, inInitialList bool) {
	f.reportStarted()
	if u, ok := obj.(*unstructured.Unstructured); ok && f.subscriber.OnAdd != nil {
		f.call(func() { f.subscriber.OnAdd(f.gvr(), u, inInitialList) })
	}
}

func (f *follower) OnUpdate(before, after any) {
	f.reportStarted()
	b, _ := before.(*unstructured.Unstructured)
	if a, ok := after.(*unstructured.Unstructured); ok && f.subscriber.OnUpdate != nil {
		f.call(func() { f.subscriber.OnUpdate(f.gvr(), b, a) })
	}
}

func (f *follower) OnDelete(obj any) {
	f.reportStarted()
	final := true
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj, final = tombstone.Obj, false
	}
	if u, ok := obj.(*unstructured.Unstructured); ok && f.subscriber.OnDelete != nil {
		f.call(func() { f.subscriber.OnDelete(f.gvr(), u, final) })
	}
}

func (f *follower) OnLeftShard(obj any) {
	f.reportStarted()
	if u, ok := obj.(*unstructured.Unstructured); ok && f.subscriber.OnLeftShard != nil {
		f.call(func() { f.subscriber.OnLeftShard(f.gvr(), u) })
	}
}
