package delivery

import (
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/store"
)

// List has the changes that a list made to the cache. It is immutable.
//
// Each handler's queue has one element for the whole list. Its notifications are created one by one when the
// handler is called, because the notifications of a million objects would take as much memory for each
// handler as the compressed objects.
type List struct {
	Changes Changes
	// Initial is true until the informer has synced. FirstOfIncarnation is true for the first list of a
	// partition in each later incarnation. Handlers are then also notified of objects with an unchanged
	// resource version, because the type's version may have changed.
	Initial, FirstOfIncarnation bool
	// HandlersLackOld is true if handlers have not received the old objects of the changes.
	HandlersLackOld bool
	// Complete is true for a complete list of a partition.
	Complete bool
	// WithoutResyncs is true if handlers are not notified of unchanged objects.
	WithoutResyncs bool
	// additionsOnly is true if all notifications are additions. count sets it.
	additionsOnly bool
}

// Changes are the changes of a list.
type Changes interface {
	Len() int
	At(n int) store.Change
}

type ChangeSlice []store.Change

func (l ChangeSlice) Len() int { return len(l) }

func (l ChangeSlice) At(n int) store.Change { return l[n] }

// initialContent has the cached objects as additions, for one new handler. It creates the list of items when
// the handler is called, and not under the informer's lock, so that new handlers do not delay events.
type initialContent struct {
	snapshot *store.Snapshot // nil after items is set
	items    []store.Item
}

func (p *initialContent) Len() int {
	if p.snapshot != nil {
		return p.snapshot.Len()
	}
	return len(p.items)
}

// At implements Changes. It can be called once for each n, because it releases the item.
func (p *initialContent) At(n int) store.Change {
	if p.snapshot != nil {
		p.items, p.snapshot = p.snapshot.Items(), nil
	}
	item := p.items[n]
	p.items[n] = nil
	return store.Change{New: item}
}

// notificationsFor returns the notifications of change n: none, one, or two for a replaced object. There is
// none for an identity, because the transform of its object has failed.
func (l *List) notificationsFor(n int) (result [2]Notification, count int) {
	c := l.Changes.At(n)
	if l.HandlersLackOld {
		c.Old = nil
	}
	switch {
	case c.New == nil && c.Old == nil, store.IsIdentity(c.New):
		return result, 0
	case c.New == nil:
		result[0] = DeletedUnobserved(c.Key, c.Old)
	case c.Old == nil:
		result[0] = Added(c.New, l.Initial)
	case store.SameUID(c.Old, c.New):
		result[0] = Updated(c.Old, c.New, !l.FirstOfIncarnation && store.Unchanged(c.Old, c.New))
	default:
		result[0], result[1] = DeletedUnobserved(c.Key, c.Old), Added(c.New, l.Initial)
		return result, 2
	}
	return result, 1
}

// count returns the numbers of notifications and of resyncs among them. It adds the notifications to events,
// and sets additionsOnly.
func (l *List) count(events *status.EventStats) (total, resyncs int) {
	addsBefore := events.Adds
	for n := range l.Changes.Len() {
		result, count := l.notificationsFor(n)
		for k := range count {
			if result[k].resync {
				resyncs++
			}
			countEvent(events, &result[k])
		}
		total += count
	}
	l.additionsOnly = events.Adds-addsBefore == int64(total)
	return total, resyncs
}

// element returns the notifications of the list as one queue element. The handler receives count of them.
func (l List) element(count int, wantsResyncs bool) Notification {
	return Notification{kind: kindList,
		current: &notificationCursor{List: l, remaining: count, wantsResyncs: wantsResyncs}}
}

// notificationCursor iterates over the notifications of a list for one handler.
type notificationCursor struct {
	List
	n, remaining int
	// wantsResyncs is true if the handler takes part in resyncs.
	wantsResyncs bool
	// pending is the second notification of a change, if hasPending is set.
	pending    Notification
	hasPending bool
}

// next returns the next notification. There must be one.
func (c *notificationCursor) next() Notification {
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
