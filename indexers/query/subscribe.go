package query

import (
	"cmp"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers/references"
)

// EventType is the type of an [Event].
type EventType string

const (
	// Added: the object matches the query now.
	Added EventType = "Added"
	// Modified: the object changed and still matches.
	Modified EventType = "Modified"
	// Deleted: the object no longer matches, was deleted, or left the informer's shard.
	Deleted EventType = "Deleted"
	// Failed: a CEL expression failed on the object, which therefore does not match. Deleted comes before it
	// if the object matched.
	Failed EventType = "Failed"
)

// Event is a change to the objects that match a query.
type Event struct {
	Type EventType
	Key  string
	// Object is the current state of the object, or its last known state if it was deleted. It is shared and
	// must not be changed.
	Object *unstructured.Unstructured
	// Old is the previous state of the object, also for Added and Deleted if the object only began or ceased
	// to match. It is nil if the object did not exist or was not known before.
	Old *unstructured.Unstructured
	// Initial is set for objects that existed when the informer began to follow them.
	Initial bool
	// Gone is set for Deleted if the object was deleted. It is false if the object no longer matches or left
	// the shard.
	Gone bool
	// Err is the cause of Failed.
	Err error
}

// Informer has the methods of an informer that a subscription needs.
type Informer = references.Informer

// Subscription is an event handler for the objects that match a query.
type Subscription struct {
	informer     Informer
	registration cache.ResourceEventHandlerRegistration
}

// Subscribe calls handler for each change to the matching objects, one call at a time and in order. The
// first calls are Added for the current objects. If an object is replaced by a new one of the same name,
// handler receives Deleted and then Added.
//
// Repeated notifications of an informer, such as resyncs and relists, cause no event unless the match
// changes. Objects are compared by content, not by resource version: a change of a CRD can change an object
// without a write.
//
// The subscription stores the keys of the matching objects. The handler runs on a goroutine of the informer,
// which ends with the informer or with Stop. Subscribe returns a [DroppedFieldError] if the query reads a
// field that the informer drops.
func Subscribe(informer Informer, matcher *Matcher, handler func(Event)) (*Subscription, error) {
	if i, ok := informer.(interface{ Drops(field string) bool }); ok {
		if err := matcher.check(i.Drops); err != nil {
			return nil, err
		}
	}
	registration, err := informer.AddEventHandler(&follower{matcher: matcher, handle: handler,
		matchedKeys: map[string]struct{}{}})
	if err != nil {
		return nil, err
	}
	return &Subscription{informer, registration}, nil
}

// HasSynced reports whether the handler has been called for all initial objects.
func (s *Subscription) HasSynced() bool { return s.registration.HasSynced() }

// Synced returns a channel that is closed when the handler has been called for all initial objects.
func (s *Subscription) Synced() <-chan struct{} { return s.registration.HasSyncedChecker().Done() }

// Stop ends the subscription. The handler may still be called for events in flight.
func (s *Subscription) Stop() error { return s.informer.RemoveEventHandler(s.registration) }

// follower turns informer events into query events. It needs no lock, because an informer calls a handler's
// methods one at a time.
type follower struct {
	matcher     *Matcher
	handle      func(Event)
	matchedKeys map[string]struct{} // keys of the objects that the handler knows
}

// OnAdd implements cache.ResourceEventHandler.
func (f *follower) OnAdd(obj any, isInitial bool) {
	if u := objectOf(obj); u != nil {
		f.handleChange(nil, u, isInitial)
	}
}

// OnUpdate implements cache.ResourceEventHandler.
func (f *follower) OnUpdate(oldObj, newObj any) {
	old, u := objectOf(oldObj), objectOf(newObj)
	if u == nil {
		return
	}
	if old != nil && old.GetUID() != u.GetUID() {
		f.remove(keyOf(old), old, true)
		old = nil
	}
	f.handleChange(old, u, false)
}

// OnDelete implements cache.ResourceEventHandler.
func (f *follower) OnDelete(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		u := cmp.Or(objectOf(tombstone.Obj), &unstructured.Unstructured{Object: map[string]any{}})
		f.remove(tombstone.Key, u, true)
		return
	}
	if u := objectOf(obj); u != nil {
		f.remove(keyOf(u), u, true)
	}
}

// OnLeftShard implements sharding.LeftShardHandler.
func (f *follower) OnLeftShard(obj any) {
	if u := objectOf(obj); u != nil {
		f.remove(keyOf(u), u, false)
	}
}

func (f *follower) handleChange(old, current *unstructured.Unstructured, isInitial bool) {
	key := keyOf(current)
	_, matchedBefore := f.matchedKeys[key]
	matchesNow, err := f.matcher.Match(current)
	switch {
	case matchesNow && matchedBefore:
		if !equal(old, current) {
			f.handle(Event{Type: Modified, Key: key, Object: current, Old: old})
		}
	case matchesNow:
		f.matchedKeys[key] = struct{}{}
		f.handle(Event{Type: Added, Key: key, Object: current, Old: old, Initial: isInitial})
	case matchedBefore:
		delete(f.matchedKeys, key)
		f.handle(Event{Type: Deleted, Key: key, Object: current, Old: old})
	}
	if err != nil && !equal(old, current) {
		f.handle(Event{Type: Failed, Key: key, Object: current, Old: old, Initial: isInitial, Err: err})
	}
}

// equal reports whether two states of an object have the same content. It is cheap: most writes change the
// resource version, and decoded states of a packed object share equal parts.
func equal(old, u *unstructured.Unstructured) bool {
	return old != nil && old.GetResourceVersion() == u.GetResourceVersion() &&
		reflect.DeepEqual(old.Object, u.Object)
}

// remove sends Deleted for an object that no longer exists or is out of scope.
func (f *follower) remove(key string, last *unstructured.Unstructured, isGone bool) {
	if _, matchedBefore := f.matchedKeys[key]; matchedBefore {
		delete(f.matchedKeys, key)
		f.handle(Event{Type: Deleted, Key: key, Object: last, Old: last, Gone: isGone})
	}
}
