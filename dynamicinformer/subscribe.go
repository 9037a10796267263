package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/pattern"
	"github.com/crdcache/crdcache/internal/queue"
	"github.com/crdcache/crdcache/internal/typename"
)

// Subscriber is told about the objects of all types that a Selection has. Funcs that are nil are not called.
//
// The funcs of one subscriber are never called at the same time, and with no lock held. For each type they
// come in the order in which its cache changed: OnStarted, OnAdd with inInitialList for what is there,
// OnSynced, what happens from then on, OnDelete for each object that is left, and OnGone; then perhaps the
// next generation. Nothing is promised about the order between types. Objects are shared and must not be
// changed.
//
// A slow subscriber delays no other, and no cache. While one of its funcs runs, what happens is queued, type
// by type; Subscription.Depth tells how much. A panic is treated as that of an event handler.
type Subscriber struct {
	// OnStarted tells that a type begins to be followed.
	OnStarted func(g status.Generation)
	// OnAdd tells of an object that appeared; inInitialList says that it was there when the generation
	// started, or when the subscriber came.
	OnAdd func(gvr schema.GroupVersionResource, obj *unstructured.Unstructured, inInitialList bool)
	// OnUpdate tells of an object that changed.
	OnUpdate func(gvr schema.GroupVersionResource, before, after *unstructured.Unstructured)
	// OnDelete tells of an object that is gone, in its final state, or, if final is false, in the last that
	// is known.
	OnDelete func(gvr schema.GroupVersionResource, obj *unstructured.Unstructured, final bool)
	// OnDeparted tells of an object that has left the shard (see ResourceOptions.Shard), and exists.
	OnDeparted func(gvr schema.GroupVersionResource, obj *unstructured.Unstructured)
	// OnSynced tells that OnAdd has been called for all that there was.
	OnSynced func(g status.Generation)
	// OnGone tells that a generation is over, and why. Every object has been told of as deleted, with three
	// exceptions: with ReasonNotSelected the type lives on, and nothing more is told of it; with
	// ReasonVersionChanged the next generation follows another version, and tells of the same objects as
	// updates; with ReasonStopped the context of Start has ended, what was queued is dropped, and the next
	// Start follows the type anew, with all of its objects as additions.
	OnGone func(g status.Generation, reason status.Reason)
	// OnError tells that a type cannot be followed, although it is selected.
	OnError func(gvr schema.GroupVersionResource, err error)
}

// Subscription follows all present and future types of a Selection for a Subscriber. It is safe for
// concurrent use.
type Subscription struct {
	factory    *Factory
	selection  Selection
	subscriber Subscriber
	options    []ResourceOptions

	// turn holds one token, which whoever calls the subscriber takes.
	turn chan struct{}
	// closing is closed by Close.
	closing chan struct{}
	// work brings what is followed in line with what is selected: it makes its calls one at a time.
	work *queue.Calls
	// unlink takes the subscription out of the factory.
	unlink func()

	mu struct {
		sync.Mutex
		closed bool
		// unsubscribe ends the calls of the source of types; nil where there is none.
		unsubscribe func()
		// types are those that the source knows.
		types map[schema.GroupResource]typesource.Type
		// follows are the types that are followed. Only work changes it.
		follows map[schema.GroupResource]*follower
	}
}

// errNoTypes is for patterns without anything to match them with.
var errNoTypes = errors.New("a selection with patterns or Match needs Options.Types, which tells what there is to select")

// Subscribe tells a subscriber about the objects of all types that a selection has, now and later, until
// Close or Shutdown. Each type is followed by an informer of the factory, acquired with the options given
// (see Acquire) and released when the type is gone or no longer selected. A selection of one type, without
// patterns, works without Options.Types.
//
// It fails for a selection that is none, with ErrShutdown after Shutdown, and without Options.Types where
// that is needed. It does not wait for anything. As all informers, those of a subscription run once Start has
// been called. When the context of Start ends, the subscription stays, and the next Start revives it.
func (f *Factory) Subscribe(selection Selection, subscriber Subscriber,
	options ...ResourceOptions) (*Subscription, error) {
	fixed, isFixed := selection.fixed()
	selection = selection.withDefaults()
	if err := selection.validate(); err != nil {
		return nil, fmt.Errorf("dynamicinformer: subscribing: %w", err)
	}
	if f.options.Types == nil && !isFixed {
		return nil, fmt.Errorf("dynamicinformer: subscribing: %w", errNoTypes)
	}
	s := &Subscription{
		factory: f, selection: selection, subscriber: subscriber, options: options,
		turn: make(chan struct{}, 1), closing: make(chan struct{}), work: queue.NewCalls(),
	}
	s.mu.types = map[schema.GroupResource]typesource.Type{}
	s.mu.follows = map[schema.GroupResource]*follower{}
	s.unlink = func() { f.subscriptions.remove(s) }
	if !f.subscriptions.add(s) {
		return nil, ErrShutdown
	}
	if f.options.Types == nil {
		typeNews{s}.SetType(typesource.Type{GroupResource: fixed.GroupResource(),
			Versions: []string{fixed.Version}, Established: true})
		return s, nil
	}
	s.ends(f.options.Types.Subscribe(typeNews{s}))
	return s, nil
}

// ends sets what ends the calls of the source of types, or calls it if the subscription has been closed
// meanwhile: no lock is held then, because the source may be in the midst of a call.
func (s *Subscription) ends(unsubscribe func()) {
	s.mu.Lock()
	closed := s.mu.closed
	if !closed {
		s.mu.unsubscribe = unsubscribe
	}
	s.mu.Unlock()
	if closed {
		unsubscribe()
	}
}

// fixed returns the one type that a selection has, if that is known without looking.
func (s Selection) fixed() (schema.GroupVersionResource, bool) {
	one := s.Match == nil && s.Version != "" && s.Resource != ""
	for _, text := range []string{s.Group, s.Version, s.Resource} {
		one = one && !pattern.IsGlob(text)
	}
	return schema.GroupVersionResource{Group: s.Group, Version: s.Version, Resource: s.Resource}, one
}

// Close ends the subscription; what is queued is dropped, and no object is told of as deleted. It does not
// wait for a call that is under way (Done does), so it may be called from inside, and more than once.
func (s *Subscription) Close() {
	s.mu.Lock()
	closed, unsubscribe := s.mu.closed, s.mu.unsubscribe
	s.mu.closed = true
	s.mu.Unlock()
	if closed {
		return
	}
	close(s.closing)
	if unsubscribe != nil {
		unsubscribe()
	}
	s.work.Push(s.unwind)
}

// Done is closed when the subscriber is not called any more, after Close or Shutdown.
func (s *Subscription) Done() <-chan struct{} { return s.work.Done() }

// Depth is how many events of all types the subscriber has not been told of yet, with the one it is being
// told of.
func (s *Subscription) Depth() int {
	total := 0
	for _, followed := range s.Types() {
		total += followed.Depth
	}
	return total
}

// Types returns the types that are followed, ordered by group, resource and version.
func (s *Subscription) Types() []status.Followed {
	s.mu.Lock()
	follows := slices.Collect(maps.Values(s.mu.follows))
	s.mu.Unlock()
	all := make([]status.Followed, 0, len(follows))
	for _, f := range follows {
		all = append(all, status.Followed{Status: f.informer.Status(), Depth: f.registration.Depth()})
	}
	slices.SortFunc(all, func(a, b status.Followed) int {
		return typename.Compare(a.Status.GVR,
			b.Status.GVR)
	})
	return all
}

// call calls the subscriber in its turn, unless the subscription is closed before.
func (s *Subscription) call(f func()) {
	select {
	case <-s.closing:
		return
	default:
	}
	select {
	case <-s.closing:
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
		f()
	}
}

// subscriptions are those of a factory.
type subscriptions struct {
	mu struct {
		sync.Mutex
		closed bool
		all    map[*Subscription]struct{}
	}
}

// add returns false once closeAll has been called.
func (s *subscriptions) add(one *Subscription) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return false
	}
	if s.mu.all == nil {
		s.mu.all = map[*Subscription]struct{}{}
	}
	s.mu.all[one] = struct{}{}
	return true
}

func (s *subscriptions) remove(one *Subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.all, one)
}

// closeAll closes all subscriptions and admits no more; the channels it returns tell of their ends.
func (s *subscriptions) closeAll() []<-chan struct{} {
	s.mu.Lock()
	s.mu.closed = true
	all := slices.Collect(maps.Keys(s.mu.all))
	s.mu.Unlock()
	var ends []<-chan struct{}
	for _, one := range all {
		one.Close()
		ends = append(ends, one.Done())
	}
	return ends
}

// awaitAll waits until all channels are closed, or ctx has ended: then it returns the cause.
func awaitAll(ctx context.Context, all []<-chan struct{}) error {
	for _, one := range all {
		select {
		case <-one:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
