package informer

import (
	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/store"
)

// listChanges has the changes that a list made to the cache. It is immutable.
//
// Each handler's queue has one element for the whole list. Its notifications are created one by one when the
// handler is called, because the notifications of a million objects would take as much memory for each
// handler as the compressed objects.
type listChanges struct {
	changes changeList
	// initial is true until the informer has synced. firstOfIncarnation is true for the first list of a
	// partition in each later incarnation. Handlers are then also notified of objects with an unchanged
	// resource version, because the type's version may have changed.
	initial, firstOfIncarnation bool
	handlersLackOld             bool // handlers have not received the old objects of the changes
	// partition is that of the objects; nil for several. complete is true for a complete list of it.
	partition *partition
	complete  bool
	// withoutResyncs is true if handlers are not notified of unchanged objects.
	withoutResyncs bool
	// additionsOnly is true if all notifications are additions. count sets it.
	additionsOnly bool
}

type changeList interface {
	Len() int
	At(n int) store.Change
}

var _ changeList = store.Differences{}

type changeSlice []store.Change

func (l changeSlice) Len() int { return len(l) }

func (l changeSlice) At(n int) store.Change { return l[n] }

// initialContent has the cached objects as additions, for one new handler. It creates the list of items when
// the handler is called, and not under the informer's lock, so that new handlers do not delay events.
type initialContent struct {
	snapshot *store.Snapshot // nil after items is set
	items    []Item
}

func (p *initialContent) Len() int {
	if p.snapshot != nil {
		return p.snapshot.Len()
	}
	return len(p.items)
}

// At implements changeList. It can be called once for each n, because it releases the item.
func (p *initialContent) At(n int) store.Change {
	if p.snapshot != nil {
		p.items, p.snapshot = p.snapshot.Items(), nil
	}
	item := p.items[n]
	p.items[n] = nil
	return store.Change{New: item}
}

// notificationsFor returns the notifications of change n: none, one, or two for a replaced object.
func (l *listChanges) notificationsFor(n int) (result [2]notification, count int) {
	c := l.changes.At(n)
	if l.handlersLackOld {
		c.Old = nil
	}
	switch {
	case c.New == nil && c.Old == nil, isIdentity(c.New):
		return result, 0
	case c.New == nil:
		result[0] = deletedUnobserved(c.Key, c.Old)
	case c.Old == nil:
		result[0] = newAddition(c.New, l.initial)
	case sameUID(c.Old, c.New):
		result[0] = newUpdate(c.Old, c.New, !l.firstOfIncarnation && unchanged(c.Old, c.New))
	default:
		result[0], result[1] = deletedUnobserved(c.Key, c.Old), newAddition(c.New, l.initial)
		return result, 2
	}
	return result, 1
}

// isIdentity reports whether an item is only an identity, because the transform of its object has failed.
func isIdentity(item Item) bool {
	o, ok := item.(*packed.Object)
	return ok && o.IsIdentity()
}

// countEvents returns the numbers of notifications and of resyncs among them. It adds the notifications to
// events, and sets additionsOnly.
func (l *listChanges) countEvents(events *Events) (total, resyncs int) {
	addsBefore := events.Adds
	for n := range l.changes.Len() {
		result, count := l.notificationsFor(n)
		for k := range count {
			if result[k].resync {
				resyncs++
			}
			events.add(&result[k])
		}
		total += count
	}
	l.additionsOnly = events.Adds-addsBefore == int64(total)
	return total, resyncs
}

// notificationCursor iterates over the notifications of a list for one handler.
type notificationCursor struct {
	listChanges
	n, remaining int
	// wantsResyncs is true if the handler takes part in resyncs.
	wantsResyncs bool
	// pending is the second notification of a change, if hasPending is set.
	pending    notification
	hasPending bool
}

// next returns the next notification. There must be one.
func (c *notificationCursor) next() notification {
	c.remaining--
	if c.hasPending {
		c.hasPending = false
		return c.pending
	}
	for {
		result, count := c.notificationsFor(c.n)
		c.n++
		if count == 0 || result[0].resync && !c.wantsResyncs {
			continue
		}
		if count == 2 {
			c.pending, c.hasPending = result[1], true
		}
		return result[0]
	}
}

// next removes the first notification of a queue element, and reports whether there are more.
func (n *notification) next() (notification, bool) {
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
func (n *notification) eventCount() int {
	switch n.kind {
	case kindMark, kindCoalesced: // the coalescer counts its notifications
		return 0
	case kindList:
		return n.current.(*notificationCursor).remaining
	}
	return 1
}
