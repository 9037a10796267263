package dynamicinformer

import (
	"errors"
	"maps"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/health"
	"github.com/crdcache/crdcache/internal/informer/delivery"
	"github.com/crdcache/crdcache/internal/store"
)

// typeListener receives the types of a source for a subscription.
type typeListener struct{ *Subscription }

var _ typesource.Listener = typeListener{}

func (s typeListener) SetType(t typesource.Type) {
	if !s.selection.mayMatch(t.GroupResource) {
		return // a subscription keeps no types of others
	}
	s.reconcileQueue.Push(func() {
		s.types[t.GroupResource] = t
		s.reconcile(t.GroupResource)
	})
}

func (s typeListener) RemoveType(gr schema.GroupResource, _ bool) {
	s.reconcileQueue.Push(func() {
		delete(s.types, gr)
		s.reconcile(gr)
	})
}

func (typeListener) SetUnknown(map[schema.GroupVersion]error) {}

func (typeListener) SetComplete() {}

// reconcile starts or stops watching one type, so that the watched types match the selection. It is called
// again by reconcileQueue whenever a type or an informer changes.
func (s *Subscription) reconcile(gr schema.GroupResource) {
	s.mu.Lock()
	closed, f := s.mu.closed, s.mu.followers[gr]
	s.mu.Unlock()
	t, exists := s.types[gr]
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
	moves := f != nil && selected && version != current && f.isSuspended()
	if f != nil && !moves {
		f.releaseSuccessor()
	}
	switch {
	case f != nil && f.isStopped() && s.factory.isShutDown(): // Close follows
	case f != nil && f.isStopped():
		s.stopFollower(f, status.ReasonStopped)
		s.reconcile(gr) // with a new informer, for the next Start
	case f == nil && selected:
		gvr := gr.WithVersion(version)
		if f, err := s.follow(gvr); err != nil {
			s.reportError(gvr, err)
		} else {
			s.setFollower(f)
		}
	case f == nil:
		delete(s.types, gr) // many subscriptions of one type each would otherwise store all types of a group
	case selected && version == current:
	case exists && t.Established && slices.Contains(slices.Concat(t.Versions, t.ListOnly), current):
		s.stopFollower(f, status.ReasonNotSelected) // the type still exists
	case moves:
		s.moveFollower(f, gr.WithVersion(version))
	case f.hasEnded():
		s.stopFollower(f, status.ReasonNone)
		s.reconcile(gr) // another version may match
	}
}

func (s *Subscription) setFollower(f *follower) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.followers[f.informer.gvr.GroupResource()] = f
}

func (s *Subscription) reportError(gvr schema.GroupVersionResource, err error) {
	// After ErrShutdown the factory is about to close the subscription.
	if s.subscriber.OnError != nil && !errors.Is(err, ErrShutdown) {
		s.call(func() { s.subscriber.OnError(gvr, err) })
	}
}

// moveFollower replaces a suspended follower by one of another version of the type, when that has been
// listed. The subscriber receives the difference.
func (s *Subscription) moveFollower(f *follower, gvr schema.GroupVersionResource) {
	if f.successor == nil || f.successor.informer.gvr != gvr || f.successor.isStopped() {
		f.releaseSuccessor()
		handle, err := s.factory.acquire(gvr, s.options, true)
		if err != nil {
			s.reportError(gvr, err)
			return
		}
		f.successor = &follower{Subscription: s, handle: handle, informer: handle.Informer()}
		f.successor.unfollow, _ = f.successor.informer.health.Follow(
			func(_, _ health.Status) { f.requestReconcile() }, func(health.Status) error { return nil })
	}
	next := f.successor
	if !health.IsFilled(next.informer.Status()) {
		return // the next change of its status reconciles again
	}
	next.known = maps.Collect(f.informer.core.Snapshot().All)
	f.successor = nil
	s.stopFollower(f, status.ReasonVersionChanged)
	next.unfollow()
	if err := next.join(); err != nil {
		next.handle.Release()
		s.reconcile(gvr.GroupResource()) // with a new informer
		return
	}
	s.setFollower(next)
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
	s.factory.mu.Lock()
	delete(s.factory.mu.subscriptions, s)
	s.factory.mu.Unlock()
	s.reconcileQueue.Close()
}

// follower forwards the events of one informer to the subscriber. Marks in the handler's queue separate the
// incarnations, so that everything arrives in order.
type follower struct {
	*Subscription
	handle       *Handle
	informer     *Informer
	registration *delivery.Registration
	unfollow     func() // ends calls of statusChanged
	// openIncarnations is the number of incarnations whose end the subscriber has not received yet. suspended
	// is the last incarnation that ended without deletions, after the subscriber has received its events.
	openIncarnations atomic.Int32
	suspended        atomic.Int64
	// successor follows another version that will replace this one. It is nil, or has no registration yet.
	successor *follower

	// incarnation is the incarnation of the current events; announced is set once the subscriber has received
	// it. After the registration only the handler's goroutine uses them.
	incarnation status.Incarnation
	announced   bool
	// known has the objects received in another version that the initial list has not confirmed yet.
	known map[string]store.Item
}

var _ sharding.LeftShardHandler = (*follower)(nil)

// follow begins to watch a type. If the informer stops meanwhile, it retries with a new one.
func (s *Subscription) follow(gvr schema.GroupVersionResource) (*follower, error) {
	for {
		handle, err := s.factory.acquire(gvr, s.options, true)
		if err != nil {
			return nil, err
		}
		f := &follower{Subscription: s, handle: handle, informer: handle.Informer()}
		if err = f.join(); err == nil {
			return f, nil
		}
		handle.Release()
		if !errors.Is(err, ErrStopped) {
			return nil, err
		}
	}
}

// join adds the handler to the informer, and follows its status.
func (f *follower) join() (err error) {
	f.unfollow, err = f.informer.health.Follow(f.statusChanged, f.addHandler)
	return err
}

// addHandler adds the handler, which first receives the existing objects. The caller holds the status, so no
// incarnation begins or ends meanwhile.
func (f *follower) addHandler(now health.Status) error {
	f.incarnation = health.IncarnationOf(now)
	if isOpen(now) {
		f.openIncarnations.Add(1)
	}
	registration, err := f.informer.core.AddEventHandler(f)
	if err != nil {
		return err
	}
	f.registration = registration.(*delivery.Registration)
	if health.IsRunning(now) {
		f.registration.Mark(f.reportStarted) // for a type without objects
	}
	switch {
	case health.IsFilled(now):
		f.informer.core.MarkFilled(f.registration, f.reportSynced)
	case !isOpen(now):
		f.registration.Mark(f.deleteKnown)
	}
	return nil
}

// isOpen reports whether the subscriber has objects of an informer with this status. An incarnation without
// deletions stays open until the next one begins, or the objects are deleted.
func isOpen(s health.Status) bool { return health.IsRunning(s) || s.Suspended }

// statusChanged marks the begin and end of incarnations in the queue.
func (f *follower) statusChanged(before, after health.Status) {
	_, _, started, synced := health.IncarnationsBetween(before, after)
	if isOpen(before) && (started || !isOpen(after)) && after.State != status.Stopped {
		reason := after.Reason
		if started {
			reason = status.ReasonVersionChanged
		}
		f.registration.Mark(func() {
			f.reportGone(reason)
			f.openIncarnations.Add(-1)
			f.requestReconcile()
		})
	}
	if after.Suspended && !before.Suspended {
		f.registration.Mark(func() {
			f.suspended.Store(int64(after.Incarnation))
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
	return f.openIncarnations.Load() == 0 && health.IsTypeAbsent(now)
}

// isSuspended reports whether the version is no longer served, and all its events have been handled.
func (f *follower) isSuspended() bool {
	now := f.informer.Status()
	return now.Suspended && !health.IsRunning(now) && f.suspended.Load() == int64(now.Incarnation)
}

// releaseSuccessor gives up the change to another version.
func (f *follower) releaseSuccessor() {
	if f.successor != nil {
		f.successor.unfollow()
		f.successor.handle.Release()
		f.successor = nil
	}
}

func (f *follower) isStopped() bool { return f.informer.Status().State == status.Stopped }

// removeHandler removes the handler and waits until it is no longer called.
func (f *follower) removeHandler() {
	f.releaseSuccessor()
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
	f.deleteKnown()
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

// deleteKnown reports the deletion of the objects that the informer of another version does not have.
func (f *follower) deleteKnown() {
	for key, item := range f.known {
		f.OnDelete(cache.DeletedFinalStateUnknown{Key: key, Obj: decodedItem(item)})
	}
	f.known = nil
}

// decodedItem returns a stored item as handlers receive it.
func decodedItem(item store.Item) any {
	if object, ok := runtimeObject(item); ok {
		return decodedForReaders(object)
	}
	return item
}

func (f *follower) OnAdd(obj any, inInitialList bool) {
	f.reportStarted()
	u, ok := obj.(*unstructured.Unstructured)
	if ok && f.known != nil {
		key := cache.MetaObjectToName(u).String()
		if item, isKnown := f.known[key]; isKnown {
			delete(f.known, key)
			before := decodedItem(item)
			if b, ok := before.(*unstructured.Unstructured); ok && b.GetUID() == u.GetUID() {
				f.OnUpdate(b, u)
				return
			}
			f.OnDelete(cache.DeletedFinalStateUnknown{Key: key, Obj: before})
		}
	}
	if ok && f.subscriber.OnAdd != nil {
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
