package informer

import "github.com/crdcache/crdcache/internal/store"

// listing is the changes of a list, for handlers to be told of. Where the list is the first of a generation
// that takes over from another, an object of the same resource version may be in another form, that of
// another version of its type, so that everyone hears of it.
//
// It does not change. Each handler's queue has one element for all of it, and notifications come into being
// one by one when the handler is called: with a million objects, those of each handler would take as much
// memory as the objects do compressed.
type listing struct {
	changes changes
	// initial says that it is the first list, and takeover that a generation takes over from another.
	initial, takeover bool
	// untold says that nobody was told of what was there before.
	untold bool
}

// changes are those of a list.
type changes interface {
	Len() int
	At(n int) store.Change
}

var _ changes = store.Differences{}

// changeList is changes that are in memory.
type changeList []store.Change

// Len implements changes.
func (l changeList) Len() int { return len(l) }

// At implements changes.
func (l changeList) At(n int) store.Change { return l[n] }

// present is the content of the cache as changes, for one handler that joins. The list of items is made when
// the handler is called, not under the informer's lock, so that handlers that come and go do not delay
// events.
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

// At implements changes. Each n is asked for once: an item that has been handled must not be kept alive.
func (p *present) At(n int) store.Change {
	if p.snapshot != nil {
		p.items, p.snapshot = p.snapshot.Items(), nil
	}
	item := p.items[n]
	p.items[n] = nil
	return store.Change{New: item}
}

// of returns what handlers are told of a change: nothing, or one thing, or two where one object has taken the
// place of another.
func (l *listing) of(n int) (some [2]notification, count int) {
	c := l.changes.At(n)
	if l.untold {
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

// count returns how many notifications there are, and how many of them are only for handlers that take part
// in resyncs, and counts what they tell of.
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

// cursor goes through the notifications of a listing, for one handler.
type cursor struct {
	listing
	n, left int
	// resyncs says that the handler takes part in resyncs.
	resyncs bool
	// then is the second notification of a change, if there is one to come.
	then    notification
	hasThen bool
}

// next returns the next notification, of which there has to be one.
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

// next takes the first notification out of one that may stand for many, and reports whether there are more.
func (n *notification) next() (notification, bool) {
	if n.kind != kindList {
		return *n, false
	}
	c := n.current.(*cursor)
	return c.next(), c.left > 0
}

// count is how many events a notification stands for.
func (n *notification) count() int {
	switch n.kind {
	case kindMark:
		return 0
	case kindList:
		return n.current.(*cursor).left
	}
	return 1
}
