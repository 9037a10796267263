package dynamicinformer

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/health"
	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/informer/delivery"
	"github.com/crdcache/crdcache/internal/queue"
	"github.com/crdcache/crdcache/internal/store"
)

// typeListener receives the types of a source for a subscription.
type typeListener struct{ *Subscription }

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
	moves := f != nil && (f.detached != nil || selected && (f.generation != s.generation ||
		version != current && f.informer.Status().Suspended))
	switch {
	case f != nil && f.isStopped() && s.factory.isShutDown(): // Close follows
	case f != nil && f.isStopped():
		s.stopFollower(f, status.ReasonStopped)
		s.reconcile(gr) // with a new informer, for the next Start
	case f == nil && selected:
		if next := s.acquireFollower(gr.WithVersion(version)); next != nil {
			s.addFollower(next)
		}
	case f == nil:
		delete(s.types, gr) // many subscriptions of one type each would otherwise store all types of a group
	case !selected && exists && t.Established &&
		slices.Contains(slices.Concat(t.Versions, t.ListOnly), current):
		s.stopFollower(f, status.ReasonNotSelected) // the type still exists
	case moves:
		s.moveFollower(f, gr.WithVersion(cmp.Or(version, f.current().gvr.Version)))
	case (!selected || version != current) && f.hasEnded():
		s.stopFollower(f, status.ReasonNone)
		s.reconcile(gr) // another version may match
	default:
		f.releaseSuccessor()
	}
}

// acquireFollower returns a follower without a handler; nil if that fails.
func (s *Subscription) acquireFollower(gvr schema.GroupVersionResource) *follower {
	handle, err := s.factory.acquire(gvr, s.options, true)
	if err != nil {
		s.reportError(gvr, err)
		return nil
	}
	return &follower{Subscription: s, generation: s.generation, handle: handle, informer: handle.Informer()}
}

// addFollower begins to watch a type. If the informer stops meanwhile, it retries with a new one.
func (s *Subscription) addFollower(f *follower) {
	var err error
	if f.unfollow, err = f.informer.health.Follow(f.statusChanged, f.addHandler); err != nil {
		f.handle.Release()
		if s.reportError(f.informer.gvr, err); errors.Is(err, ErrStopped) {
			s.reconcile(f.informer.gvr.GroupResource())
		}
	}
}

// reportError reports an error, unless an informer or the factory is about to end.
func (s *Subscription) reportError(gvr schema.GroupVersionResource, err error) {
	if s.subscriber.OnError != nil && !errors.Is(err, ErrShutdown) && !errors.Is(err, ErrStopped) {
		s.call(func() { s.subscriber.OnError(gvr, err) })
	}
}

// moveFollower replaces a follower that is suspended, or has former options. The subscriber receives the
// difference when the next informer has listed the type, and is as recent as the former one.
func (s *Subscription) moveFollower(f *follower, gvr schema.GroupVersionResource) {
	next := f.successor.Load()
	if next == nil || next.informer.gvr != gvr || next.generation != s.generation || next.isStopped() {
		if next = s.acquireFollower(gvr); next == nil {
			return
		}
		next.unfollow, _ = next.informer.health.Follow(
			func(_, _ health.Status) { f.requestReconcile() }, func(health.Status) error { return nil })
		f.releaseSuccessor()
		f.successor.Store(next)
	}
	if f.detached == nil {
		if health.IsFilled(f.informer.Status()) && !health.IsFilled(next.informer.Status()) {
			return // the next change of its status reconciles again
		}
		f.detached = f.informer.core.Detach([]*delivery.Registration{f.registration})
	}
	if next.recent == nil {
		ctx, cancel := context.WithCancel(context.Background())
		unfollow := next.unfollow
		next.recent, next.unfollow = make(chan struct{}), func() { cancel(); unfollow() }
		go f.awaitRecent(ctx, next) // ended by unfollow
	}
	if !queue.IsClosed(next.recent) {
		return
	}
	next.known = maps.Collect(objectsOnly(f.detached.All))
	maps.Copy(next.known, f.known) // not in the detached content
	f.successor.Store(nil)
	s.stopFollower(f, status.ReasonVersionChanged)
	next.unfollow()
	s.addFollower(next)
}

// awaitRecent waits until an informer is as recent as the detached content, which the subscriber has received
// then.
func (f *follower) awaitRecent(ctx context.Context, next *follower) {
	move := &handover{detached: []*informer.DetachedContent{f.detached},
		HandlerMove: &HandlerMove{From: []*Informer{f.informer}, To: []*Informer{next.informer}}}
	for {
		_, changed := next.informer.StatusChange()
		_, formerChanged := f.informer.StatusChange()
		if err := move.awaitVersions(ctx); err == nil || errors.Is(err, ErrVersionLost) {
			break
		}
		select {
		case <-changed:
		case <-formerChanged:
		case <-ctx.Done():
			return
		}
	}
	<-f.registration.ShutdownChan()
	close(next.recent)
	f.requestReconcile()
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
	// openIncarnations is the number of incarnations whose end the subscriber has not received yet.
	openIncarnations atomic.Int32
	generation       int // of the options
	// successor will replace this one. It is nil, or has no registration yet. detached is the content that
	// the subscriber has, or receives, before that; nil before the handler is detached.
	successor atomic.Pointer[follower]
	detached  *informer.DetachedContent
	// recent is closed when a successor can replace the detached follower; nil before it awaits that.
	recent chan struct{}

	// incarnation is the incarnation of the current events; announced is set once the subscriber has received
	// it. After the registration only the handler's goroutine uses them.
	incarnation status.Incarnation
	announced   bool
	// known has the objects received before a move that the initial list has not confirmed yet.
	known map[string]runtime.Object
}

var _ sharding.LeftShardHandler = (*follower)(nil)

// addHandler adds the handler, which first receives the existing objects. The caller holds the status, so no
// incarnation begins or ends meanwhile.
func (f *follower) addHandler(now health.Status) error {
	f.incarnation = health.IncarnationOf(now)
	if isOpen(now) {
		f.openIncarnations.Add(1)
	}
	f.mu.Lock() // so that Types has the type when the subscriber is called
	defer f.mu.Unlock()
	registration, err := f.informer.core.AddEventHandler(f)
	if err != nil {
		return err
	}
	f.registration = registration.(*delivery.Registration)
	f.mu.followers[f.informer.gvr.GroupResource()] = f
	if health.IsRunning(now) {
		f.registration.Mark(f.reportStarted) // for a type without objects
	}
	switch {
	case health.IsFilled(now):
		f.informer.core.MarkFilled(f.registration, f.reportSynced)
	case !isOpen(now) && f.known != nil:
		f.openIncarnations.Add(1) // hasEnded is false before the deletions
		f.registration.Mark(func() {
			f.deleteKnown()
			f.openIncarnations.Add(-1)
			f.requestReconcile()
		})
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
	f.reconcileQueue.Push(func() { f.reconcile(f.informer.gvr.GroupResource()) })
}

// hasEnded reports whether the type was deleted and all its events have been handled.
func (f *follower) hasEnded() bool {
	return health.IsTypeAbsent(f.informer.Status()) && f.openIncarnations.Load() == 0
}

// current returns the informer, or the one that will replace it.
func (f *follower) current() *Informer { return cmp.Or(f.successor.Load(), f).informer }

// releaseSuccessor gives up a move.
func (f *follower) releaseSuccessor() {
	if next := f.successor.Swap(nil); next != nil {
		next.unfollow()
		next.handle.Release()
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
	before := f.announced
	f.announced = true
	if !before && f.subscriber.OnStarted != nil {
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

// deleteKnown reports the deletion of the objects that the next informer does not have.
func (f *follower) deleteKnown() {
	for key, before := range f.known {
		f.OnDelete(cache.DeletedFinalStateUnknown{Key: key, Obj: decodedForReaders(before)})
	}
	f.known = nil
}

func (f *follower) OnAdd(obj any, inInitialList bool) {
	f.reportStarted()
	u, ok := obj.(*unstructured.Unstructured)
	if ok && !f.confirm(u) && f.subscriber.OnAdd != nil {
		f.call(func() { f.subscriber.OnAdd(f.gvr(), u, inInitialList) })
	}
}

// confirm reports the changes of a known object by a list, and whether the subscriber has the object then.
func (f *follower) confirm(u *unstructured.Unstructured) bool {
	key := cache.MetaObjectToName(u).String()
	before, isKnown := f.known[key]
	switch delete(f.known, key); {
	case !isKnown:
	case !store.SameUID(before, u):
		f.OnDelete(cache.DeletedFinalStateUnknown{Key: key, Obj: decodedForReaders(before)})
		return false
	case u.GetResourceVersion() == "" || !store.SameVersion(before, u) ||
		before.GetObjectKind().GroupVersionKind() != u.GroupVersionKind():
		f.OnUpdate(decodedForReaders(before), u)
	}
	return isKnown
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
