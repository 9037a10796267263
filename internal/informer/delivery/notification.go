package delivery

import (
	"strings"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/store"
)

type notificationKind uint8

const (
	kindAdd          notificationKind = iota // current was added
	kindUpdate                               // previous was updated to current
	kindDelete                               // previous is the final state of a deleted object
	kindLostDeletion                         // previous is the *tombstone of a deleted object
	kindLeftShard                            // the object left the shard; previous is its last known state
	kindMark                                 // mark is called in place of the handler
	kindList                                 // current is the *notificationCursor of a list
	kindCoalesced                            // current is the *coalescer of the queue
)

// Notification is one element of a handler's queue. Its items are decoded when the handler is called.
type Notification struct {
	kind notificationKind
	// initial is true if the object belongs to the initial list.
	initial bool
	// resync is true for an update without a change. Only handlers that take part in resyncs receive it.
	resync bool
	// previous and current depend on kind. The notification of a deletion also has the stored state as
	// current, which only queues that coalesce retain.
	previous, current store.Item
	mark              func()
}

// tombstone has the last known state of an object whose deletion was not observed.
type tombstone struct {
	key      string
	lastItem store.Item
}

// Added returns the notification of an addition. initial is true if the object belongs to the initial list.
func Added(item store.Item, initial bool) Notification {
	return Notification{kind: kindAdd, current: item, initial: initial}
}

// Updated returns the notification of an update. resync is true if nothing has changed.
func Updated(previous, current store.Item, resync bool) Notification {
	return Notification{kind: kindUpdate, previous: previous, current: current, resync: resync}
}

// Deleted returns the notification of a deletion with the final state, and the stored state.
func Deleted(final, stored store.Item) Notification {
	return Notification{kind: kindDelete, previous: final, current: stored}
}

// DeletedUnobserved returns the notification of a deletion whose event was missed.
func DeletedUnobserved(key string, last store.Item) Notification {
	return Notification{kind: kindLostDeletion, previous: &tombstone{key: key, lastItem: last}}
}

// LeftShard returns the notification of an object that has left the shard.
func LeftShard(last store.Item) Notification {
	return Notification{kind: kindLeftShard, previous: last}
}

func newMark(mark func()) Notification { return Notification{kind: kindMark, mark: mark} }

func (n Notification) isResync() bool { return n.resync }

// Item returns the object of a notification; nil for a mark.
func (n Notification) Item() store.Item {
	switch last := n.previous.(type) {
	case nil:
		return n.current
	case *tombstone:
		return last.lastItem
	default:
		return last
	}
}

// next removes the first notification of a queue element, and reports whether there are more.
func (n *Notification) next() (Notification, bool) {
	switch n.kind {
	case kindList:
		c := n.current.(*notificationCursor)
		return c.next(), c.remaining > 0
	case kindCoalesced:
		return n.current.(*coalescer).next()
	}
	return *n, false
}

// eventCount returns the number of events of a queue element.
func (n *Notification) eventCount() int {
	switch n.kind {
	case kindMark, kindCoalesced: // the coalescer counts its notifications
		return 0
	case kindList:
		return n.current.(*notificationCursor).remaining
	}
	return 1
}

// deliver calls the handler, unless it ignores the notification.
func (n Notification) deliver(handler cache.ResourceEventHandler, p handlerProjection) {
	if n.kind != kindMark && p.skippedKinds[n.kind] {
		return
	}
	switch n.kind {
	case kindAdd:
		handler.OnAdd(p.object(n.current), n.initial)
	case kindUpdate:
		handler.OnUpdate(p.pair(n.previous, n.current))
	case kindDelete:
		handler.OnDelete(p.object(n.previous))
	case kindLostDeletion:
		t := n.previous.(*tombstone)
		handler.OnDelete(cache.DeletedFinalStateUnknown{Key: strings.Clone(t.key), Obj: p.object(t.lastItem)})
	case kindLeftShard:
		p.onLeftShard(p.object(n.previous))
	case kindMark:
		n.mark()
	}
}

// countEvent adds a notification to the numbers of events.
func countEvent(e *status.EventStats, n *Notification) {
	switch {
	case n.kind == kindAdd:
		e.Adds++
	case n.kind == kindUpdate && !n.resync:
		e.Updates++
	case n.kind == kindDelete || n.kind == kindLostDeletion:
		e.Deletes++
	case n.kind == kindLeftShard:
		e.LeftShard++
	}
}
