package dynamicinformer

import (
	"cmp"
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
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/queue"
)

// Subscriber receives the objects of all types that match a Selection. Nil functions are not called.
//
// The functions of a subscriber are never called concurrently, and without locks. For each type they are
// called in the order in which its cache changed: OnStarted, OnAdd with inInitialList for existing objects,
// OnSynced, calls for later changes, OnDelete for each remaining object, and OnGone. Then the next
// incarnation may follow. There is no order between types. Objects are shared and must not be changed.
//
// A slow subscriber delays neither other subscribers nor caches. Events are queued for each type while a
// function runs: see Subscription.Depth. A panic is handled like that of an event handler.
type Subscriber struct {
	// OnStarted is called when a type begins to be watched.
	OnStarted func(incarnation status.Incarnation)
	// OnAdd receives an added object. inInitialList is set if the object existed when the incarnation started
	// or the subscriber was added.
	OnAdd func(gvr schema.GroupVersionResource, obj *unstructured.Unstructured, inInitialList bool)
	// OnUpdate receives a changed object.
	OnUpdate func(gvr schema.GroupVersionResource, before, after *unstructured.Unstructured)
	// OnDelete receives a deleted object: its final state if final is set, otherwise the last known state.
	OnDelete func(gvr schema.GroupVersionResource, obj *unstructured.Unstructured, final bool)
	// OnLeftShard receives an object that left the shard (see ResourceOptions.Shard) and still exists.
	OnLeftShard func(gvr schema.GroupVersionResource, obj *unstructured.Unstructured)
	// OnSynced is called after OnAdd was called for all existing objects.
	OnSynced func(incarnation status.Incarnation)
	// OnGone is called at the end of an incarnation, usually after OnDelete for every object. There are three
	// exceptions. ReasonNotSelected: the type still exists, and no further calls follow.
	// ReasonVersionChanged: the next incarnation reports the same objects as updates, or after Change the
	// difference. ReasonStopped: the context of Start has ended, queued events are dropped, and the next
	// Start adds all objects again. While a type is suspended (see status.Status), nothing is called.
	OnGone func(incarnation status.Incarnation, reason status.Reason)
	// OnError is called if a selected type cannot be watched.
	OnError func(gvr schema.GroupVersionResource, err error)
}

// Subscription watches all present and future types of a Selection for a Subscriber. It is safe for
// concurrent use.
type Subscription struct {
	factory    *Factory
	selection  Selection
	subscriber Subscriber
	// options and generation, the number of their changes, are used only by reconcileQueue.
	options    []ResourceOptions
	generation int

	// callToken is full while the subscriber is called.
	callToken chan struct{}
	// closing is closed by Close.
	closing chan struct{}
	// reconcileQueue serializes the changes of followers.
	reconcileQueue *queue.Calls
	// types are the selected types. Only reconcileQueue uses them.
	types map[schema.GroupResource]typesource.Type

	mu struct {
		sync.Mutex
		closed bool
		// unsubscribe ends the calls of the type source; nil without one.
		unsubscribe func()
		// followers are the watched types. Only reconcileQueue changes them.
		followers map[schema.GroupResource]*follower
	}
}

var errNoTypes = errors.New("a selection with patterns or Match requires Options.Types")

// Subscribe calls a subscriber for the objects of all types that match a selection, now and in the future,
// until Close or Shutdown. For each type it acquires an informer of the factory with the given options (see
// Acquire). It releases the informer when the type is deleted or no longer matches. A selection of one type
// without patterns works without Options.Types.
//
// It returns an error for an invalid selection, and for a missing Options.Types if the selection requires it.
// After Shutdown it returns ErrShutdown. It does not wait. The informers run once Start has been called. When
// the context of Start ends, the subscription remains, and the next Start revives it.
func (f *Factory) Subscribe(selection Selection, subscriber Subscriber,
	options ...ResourceOptions) (*Subscription, error) {
	single, isSingle := selection.singleType()
	selection.Version = cmp.Or(selection.Version, "*")
	if err := selection.validate(); err != nil {
		return nil, fmt.Errorf("dynamicinformer: subscribing: %w", err)
	}
	if f.options.Types == nil && !isSingle {
		return nil, fmt.Errorf("dynamicinformer: subscribing: %w", errNoTypes)
	}
	s := &Subscription{
		factory: f, selection: selection, subscriber: subscriber, options: options,
		callToken: make(chan struct{}, 1), closing: make(chan struct{}), reconcileQueue: queue.NewCalls(),
		types: map[schema.GroupResource]typesource.Type{},
	}
	s.mu.followers = map[schema.GroupResource]*follower{}
	if !f.addSubscription(s) {
		return nil, ErrShutdown
	}
	if f.options.Types == nil {
		typeListener{s}.SetType(typesource.Type{GroupResource: single.GroupResource(),
			Versions: []string{single.Version}, Established: true})
		return s, nil
	}
	s.setUnsubscribe(f.options.Types.Subscribe(typeListener{s}))
	return s, nil
}

// setUnsubscribe stores the function that ends the calls of the type source. If the subscription has been
// closed meanwhile, setUnsubscribe calls it, without a lock because the source may be in a call.
func (s *Subscription) setUnsubscribe(unsubscribe func()) {
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

// singleType returns the type of a selection without patterns.
func (s Selection) singleType() (schema.GroupVersionResource, bool) {
	isSingle := s.Match == nil && s.Version != "" && s.Resource != ""
	for _, text := range []string{s.Group, s.Version, s.Resource} {
		isSingle = isSingle && !naming.IsGlob(text)
	}
	return schema.GroupVersionResource{Group: s.Group, Version: s.Version, Resource: s.Resource}, isSingle
}

// Change replaces the options. It does not wait. The former informer of a type continues until the next one
// has listed it, and is as recent. The subscriber then receives the difference, from OnGone with
// ReasonVersionChanged to OnSynced: OnAdd for objects that only the new options select, OnDelete for those
// that only the former ones select, and OnUpdate for those with another resource version. No event is missed,
// repeated or reordered (TestChangeHistories).
func (s *Subscription) Change(options ...ResourceOptions) {
	s.reconcileQueue.Push(func() {
		s.options = options
		s.generation++
		for gr := range s.types {
			s.reconcile(gr)
		}
	})
}

// Close ends the subscription. It drops queued events and reports no deletions. It does not wait for a
// running call (Done does), so the subscriber itself may call it. Further calls do nothing.
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
	s.reconcileQueue.Push(s.releaseAll)
}

// Done returns a channel that is closed when the subscriber is no longer called, after Close or Shutdown.
func (s *Subscription) Done() <-chan struct{} { return s.reconcileQueue.Done() }

// Depth returns the number of queued events of all types, including the one in a running call.
func (s *Subscription) Depth() int {
	total := 0
	for _, followed := range s.Types() {
		total += followed.Depth
	}
	return total
}

// Types returns the watched types, ordered by group, resource and version.
func (s *Subscription) Types() []status.FollowedType {
	s.mu.Lock()
	followers := slices.Collect(maps.Values(s.mu.followers))
	s.mu.Unlock()
	followed := naming.Map(followers, func(f *follower) status.FollowedType {
		return status.FollowedType{Status: f.current().Status(), Depth: f.registration.Depth()}
	})
	slices.SortFunc(followed, func(a, b status.FollowedType) int {
		return naming.CompareTypes(a.Status.GVR, b.Status.GVR)
	})
	return followed
}

// call runs f when no other call of the subscriber runs, unless the subscription is closed first.
func (s *Subscription) call(f func()) {
	if queue.IsClosed(s.closing) {
		return
	}
	select {
	case <-s.closing:
	case s.callToken <- struct{}{}:
		defer func() { <-s.callToken }()
		f()
	}
}

// addSubscription returns false after Shutdown.
func (f *Factory) addSubscription(s *Subscription) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.isShutDown() {
		f.mu.subscriptions[s] = struct{}{}
	}
	return !f.isShutDown()
}

// closeSubscriptions closes all subscriptions after the start of Shutdown. It returns their Done channels.
func (f *Factory) closeSubscriptions() []<-chan struct{} {
	f.mu.Lock()
	subscriptions := slices.Collect(maps.Keys(f.mu.subscriptions))
	f.mu.Unlock()
	return naming.Map(subscriptions, func(s *Subscription) <-chan struct{} {
		s.Close()
		return s.Done()
	})
}

// awaitAll waits until all channels are closed, or returns the cause of ctx.
func awaitAll(ctx context.Context, channels []<-chan struct{}) error {
	for _, done := range channels {
		select {
		case <-done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Selection selects types by patterns and a function. In a pattern, * matches any characters, ? matches one,
// and [abc] one of the listed ones. "*.crossplane.io" matches the groups below crossplane.io at any depth,
// but not crossplane.io itself.
type Selection struct {
	// Group is the pattern for the API group. Empty is the core group; "*" matches all.
	Group string
	// Version is the pattern for the version. Of the matching versions that support list and watch, or else
	// list, the server's preferred one is watched until it is no longer served. Default: "*".
	Version string
	// Resource is the pattern for the plural resource name; "*" matches all. Required.
	Resource string
	// Match filters the matching types. It is called without locks whenever such a type appears or changes.
	// Default: accept all.
	Match func(typesource.Type) bool
}

func (s Selection) validate() error {
	var errs []error
	if s.Resource == "" {
		errs = append(errs, errors.New("Selection.Resource is empty: use \"*\" for all"))
	}
	for field, glob := range map[string]string{"Group": s.Group, "Version": s.Version,
		"Resource": s.Resource} {
		if err := naming.CheckGlob(glob); err != nil {
			errs = append(errs, fmt.Errorf("field %s of Selection: %q is not a pattern: %w", field, glob, err))
		}
	}
	return errors.Join(errs...)
}

func (s Selection) mayMatch(gr schema.GroupResource) bool {
	return naming.MatchGlob(s.Group, gr.Group) && naming.MatchGlob(s.Resource, gr.Resource)
}

// chooseVersion returns the version to watch, or false if the type does not match. It keeps current while
// that is possible.
func (s Selection) chooseVersion(t typesource.Type, current string) (string, bool) {
	if !s.mayMatch(t.GroupResource) {
		return "", false
	}
	served := slices.DeleteFunc(slices.Concat(t.Versions, t.ListOnly),
		func(v string) bool { return !naming.MatchGlob(s.Version, v) })
	if len(served) == 0 || s.Match != nil && !s.Match(t) {
		return "", false
	}
	if slices.Contains(served, current) {
		return current, true
	}
	return served[0], true
}
