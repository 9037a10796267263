package informer

import (
	"strings"

	"k8s.io/client-go/tools/cache"
)

// kind says what a notification tells its handler.
type kind uint8

const (
	// kindAdd: current appeared; initial says whether it belongs to the initial list.
	kindAdd kind = iota
	// kindUpdate: previous became current.
	kindUpdate
	// kindDelete: previous is the final state of an object that was deleted.
	kindDelete
	// kindLost: previous is the last known state of an object that is gone (a *tombstone).
	kindLost
	// kindDeparted: previous is the last known state of an object that has left, and exists.
	kindDeparted
	// kindMark is for the queue itself: mark is called in its turn, the handler is not called.
	kindMark
	// kindList is for the queue as well: current is the *cursor of notifications of a list.
	kindList
)

// notification is one element of a subscriber's queue. It carries store items, not objects: what is packed is
// decoded when its turn comes, not while it waits.
type notification struct {
	kind    kind
	initial bool
	// resync marks an update that changed nothing: only handlers that take part in resyncs get it.
	resync            bool
	previous, current Item
	mark              func()
}

// tombstone is a deletion whose final state nobody saw.
type tombstone struct {
	key  string
	last Item
}

func added(item Item, initial bool) notification {
	return notification{kind: kindAdd, current: item, initial: initial}
}

func updated(previous, current Item, resync bool) notification {
	return notification{kind: kindUpdate, previous: previous, current: current, resync: resync}
}

func deleted(final Item) notification {
	return notification{kind: kindDelete, previous: final}
}

func lost(key string, last Item) notification {
	return notification{kind: kindLost, previous: &tombstone{key: key, last: last}}
}

func departed(last Item) notification { return notification{kind: kindDeparted, previous: last} }

func marker(mark func()) notification { return notification{kind: kindMark, mark: mark} }

func (n notification) isResync() bool { return n.resync }

// deliver calls the one handler method that the notification stands for, if that does anything.
func (n notification) deliver(handler cache.ResourceEventHandler, view view) {
	if n.kind != kindMark && view.ignored[n.kind] {
		return
	}
	switch n.kind {
	case kindAdd:
		handler.OnAdd(view.object(n.current), n.initial)
	case kindUpdate:
		handler.OnUpdate(view.pair(n.previous, n.current))
	case kindDelete:
		handler.OnDelete(view.object(n.previous))
	case kindLost:
		t := n.previous.(*tombstone)
		handler.OnDelete(cache.DeletedFinalStateUnknown{Key: strings.Clone(t.key), Obj: view.object(t.last)})
	case kindDeparted:
		view.departed(view.object(n.previous))
	case kindMark:
		n.mark()
	}
}
