package informer

import (
	"strings"

	"k8s.io/client-go/tools/cache"
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

// notification is one element of a handler's queue. Its items are decoded when the handler is called.
type notification struct {
	kind notificationKind
	// initial is true if the object belongs to the initial list.
	initial bool
	// resync is true for an update without a change. Only handlers that take part in resyncs receive it.
	resync bool
	// previous and current depend on kind. The notification of a deletion also has the stored state as
	// current, which only queues that coalesce retain.
	previous, current Item
	mark              func()
}

// tombstone has the last known state of an object whose deletion was not observed.
type tombstone struct {
	key      string
	lastItem Item
}

func newAddition(item Item, initial bool) notification {
	return notification{kind: kindAdd, current: item, initial: initial}
}

func newUpdate(previous, current Item, resync bool) notification {
	return notification{kind: kindUpdate, previous: previous, current: current, resync: resync}
}

func newDeletion(final, stored Item) notification {
	return notification{kind: kindDelete, previous: final, current: stored}
}

func deletedUnobserved(key string, last Item) notification {
	return notification{kind: kindLostDeletion, previous: &tombstone{key: key, lastItem: last}}
}

func newShardExit(last Item) notification { return notification{kind: kindLeftShard, previous: last} }

// newList returns the notifications of a list as one element. The handler receives count of them.
func newList(l listChanges, count int, wantsResyncs bool) notification {
	return notification{kind: kindList,
		current: &notificationCursor{listChanges: l, remaining: count, wantsResyncs: wantsResyncs}}
}

func newMark(mark func()) notification { return notification{kind: kindMark, mark: mark} }

func (n notification) isResync() bool { return n.resync }

// deliver calls the handler, unless it ignores the notification.
func (n notification) deliver(handler cache.ResourceEventHandler, p handlerProjection) {
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
		handler.OnDelete(cache.DeletedFinalStateUnknown{Key: strings.Clone(t.key),
			Obj: p.object(t.lastItem)})
	case kindLeftShard:
		p.onLeftShard(p.object(n.previous))
	case kindMark:
		n.mark()
	}
}
