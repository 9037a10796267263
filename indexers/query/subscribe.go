package query

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// EventType says what happened to an object, as seen by a query.
type EventType string

const (
	// Added: the query holds for the object now.
	Added EventType = "Added"
	// Modified: the object changed, and the query still holds for it.
	Modified EventType = "Modified"
	// Deleted: the query does not hold for the object any more, or the object is gone, or has left the shard
	// that the informer follows.
	Deleted EventType = "Deleted"
)

// Event is a change of what a query finds.
type Event struct {
	Type EventType
	// Key is the key of the object.
	Key string
	// Object is the object as it is now; when it is gone, as it was last known. It is shared and must not be
	// changed.
	Object *unstructured.Unstructured
	// Old is the object as it was before: also for Added and Deleted when the object is there both before and
	// after, and only began or ceased to fulfil the query. It is nil for an object that was not there, or not
	// known, before.
	Old *unstructured.Unstructured
	// Initial is set for objects that were there when the informer began to follow them.
	Initial bool
	// Gone is set for Deleted when the object does not exist any more, rather than that the query no longer
	// holds for it, or that it has left the shard.
	Gone bool
}

// Informer is what a subscription needs of an informer; all informers have it.
type Informer interface {
	AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
	RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error
}

// Subscription is a handler that follows what a query finds.
type Subscription struct {
	informer     Informer
	registration cache.ResourceEventHandlerRegistration
}

// Subscribe calls handler for each change of what the matcher's query finds, one call at a time and in order:
// first Added for all that it finds now. Applied to an empty set, the events give what the query finds at any
// time. An object that was replaced by another of its name is Deleted and then Added.
//
// What an informer repeats is no change: updates whose two objects are equal in all that they contain, as
// resyncs make them and lists after a broken connection, call the handler only if the query holds for one of
// them alone. Equal resource versions do not make objects equal: with its CRD an object can change without
// being written.
//
// The subscription remembers the keys of the objects that it finds. Handlers run on a goroutine of the
// informer, which ends with the informer or with Stop.
func Subscribe(informer Informer, matcher *Matcher, handler func(Event)) (*Subscription, error) {
	registration, err := informer.AddEventHandler(&follower{matcher: matcher, handle: handler,
		found: map[string]struct{}{}})
	if err != nil {
		return nil, err
	}
	return &Subscription{informer, registration}, nil
}

// HasSynced reports whether the handler has been called for everything that was there in the beginning.
func (s *Subscription) HasSynced() bool { return s.registration.HasSynced() }

// Synced is closed when the handler has been called for everything that was there in the beginning.
func (s *Subscription) Synced() <-chan struct{} { return s.registration.HasSyncedChecker().Done() }

// Stop ends the subscription. The handler may still be called for what is under way.
func (s *Subscription) Stop() error { return s.informer.RemoveEventHandler(s.registration) }

// follower turns the events of an informer into those of a query. An informer calls the methods of a handler
// one at a time, so nothing is locked.
type follower struct {
	matcher *Matcher
	handle  func(Event)
	found   map[string]struct{} // what the handler was told that there is
}

// OnAdd implements cache.ResourceEventHandler.
func (f *follower) OnAdd(obj any, initial bool) {
	if u := objectOf(obj); u != nil {
		f.change(nil, u, initial)
	}
}

// OnUpdate implements cache.ResourceEventHandler.
func (f *follower) OnUpdate(oldObj, newObj any) {
	old, u := objectOf(oldObj), objectOf(newObj)
	if u == nil {
		return
	}
	if old != nil && old.GetUID() != u.GetUID() {
		f.gone(keyOf(old), old)
		old = nil
	}
	f.change(old, u, false)
}

// OnDelete implements cache.ResourceEventHandler.
func (f *follower) OnDelete(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		u := objectOf(tombstone.Obj)
		if u == nil {
			u = &unstructured.Unstructured{Object: map[string]any{}}
		}
		f.gone(tombstone.Key, u)
		return
	}
	if u := objectOf(obj); u != nil {
		f.gone(keyOf(u), u)
	}
}

// OnDeparted implements dynamicinformer.Departed.
func (f *follower) OnDeparted(obj any) {
	if u := objectOf(obj); u != nil {
		f.ends(keyOf(u), u, false)
	}
}

// change tells about an object that is there.
func (f *follower) change(old, u *unstructured.Unstructured, initial bool) {
	key := keyOf(u)
	_, before := f.found[key]
	switch now := f.matcher.Match(u); {
	case now && before:
		if !equal(old, u) {
			f.handle(Event{Type: Modified, Key: key, Object: u, Old: old})
		}
	case now:
		f.found[key] = struct{}{}
		f.handle(Event{Type: Added, Key: key, Object: u, Old: old, Initial: initial})
	case before:
		delete(f.found, key)
		f.handle(Event{Type: Deleted, Key: key, Object: u, Old: old})
	}
}

// equal reports whether two states of an object are the same. This is cheap: a write shows in the resource
// version, and decoded states of a packed object share what is the same in both.
func equal(old, u *unstructured.Unstructured) bool {
	return old != nil && old.GetResourceVersion() == u.GetResourceVersion() &&
		reflect.DeepEqual(old.Object, u.Object)
}

// gone tells about an object that is not there any more.
func (f *follower) gone(key string, last *unstructured.Unstructured) { f.ends(key, last, true) }

// ends tells about an object that is not shown any more, whether or not it exists.
func (f *follower) ends(key string, last *unstructured.Unstructured, gone bool) {
	if _, before := f.found[key]; before {
		delete(f.found, key)
		f.handle(Event{Type: Deleted, Key: key, Object: last, Old: last, Gone: gone})
	}
}
