package informer

import "github.com/crdcache/crdcache/internal/store"

// listing has the changes that a list made to the cache. It is immutable.
//
// Each handler's queue has one element for the whole listing, and its notifications are made one by one when
// the handler is called. The notifications of a million objects would take as much memory, for each handler,
// as the compressed objects.
type listing struct {
	changes changes
	// initial is true until the informer has synced. takeover is true for the first list of each later
	// generation, see the type generation. With takeover, handlers are notified of objects with an unchanged
	// resource version, because the type's version may have changed.
	initial, takeover bool
	// unseen is true if handlers have not seen the old objects of the changes.
	unseen bool
}

type changes interface {
	Len() int
	At(n int) store.Change
}

var _ changes = store.Differences{}

type changeList []store.Change

// Len implements changes.
func (l changeList) Len() int { return len(l) }

// At implements changes.
func (l changeList) At(n int) store.Change { return l[n] }

// present has the cached objects as additions, for one new handler. It makes the list of items when the
// handler is called, not under the informer's lock, so that new handlers do not delay events.
type present struct {
	snapshot *store.Snapshot // nil once items are made
	items    []Item
}

// Len implements changes.
func (p *present) Len() int {
	if p.snapshot != nil {
		return p.snapshot.Len()
	}
	return len(p.items)
}

// At implements changes. It can be called once for each n, because it releases the item.
func (p *present) At(n int) store.Change {
	if p.snapshot != nil {
		p.items, p.snapshot = p.snapshot.Items(), nil
	}
	item := p.items[n]
	p.items[n] = nil
	return store.Change{New: item}
}

// of returns the notifications of change n: none, one, or two if one object has replaced another.
func (l *listing) of(n int) (some [2]notification, count int) {
	c := l.changes.At(n)
	if l.unseen {
		c.Old = nil
	}
	switch {
	case c.New == nil && c.Old == nil:
		return some, 0
	case c.New == nil:
		some[0] = lost(c.Key, c.Old)
	case c.Old == nil:
		some[0] = added(c.New, l.initial)
	case sameUID(c.Old, c.New):
		some[0] = updated(c.Old, c.New, !l.takeover && sameVersion(c.Old, c.New))
	default:
		some[0], some[1] = lost(c.Key, c.Old), added(c.New, l.initial)
		return some, 2
	}
	return some, 1
}

// count returns the number of notifications, and how many of them are resyncs. It adds the notifications to
// events.
func (l *listing) count(events *eventCounts) (all, resyncs int) {
	var sum tally
	for n := range l.changes.Len() {
		some, count := l.of(n)
		for k := range count {
			if some[k].resync {
				resyncs++
			}
			sum.add(&some[k])
		}
		all += count
	}
	events.add(sum)
	return all, resyncs
}

// cursor iterates over the notifications of a listing, for one handler.
type cursor struct {
	listing
	n, left int
	// resyncs is true if the handler takes part in resyncs.
	resyncs bool
	// then is the second notification of a change, if hasThen is set.
	then    notification
	hasThen bool
}

// next returns the next notification. There must be one.
func (c *cursor) next() notification {
	c.left--
	if c.hasThen {
		c.hasThen = false
		return c.then
	}
	for {
		some, count := c.of(c.n)
		c.n++
		if count == 0 || some[0].resync && !c.resyncs {
			continue
		}
		if count == 2 {
			c.then, c.hasThen = some[1], true
		}
		return some[0]
	}
}

// next removes the first notification of a queue element, and reports whether there are more.
func (n *notification) next() (notification, bool) {
	if n.kind != kindList {
		return *n, false
	}
	c := n.current.(*cursor)
	return c.next(), c.left > 0
}

// count returns the number of events of a queue element.
func (n *notification) count() int {
	switch n.kind {
	case kindMark:
		return 0
	case kindList:
		return n.current.(*cursor).left
	}
	return 1
}
