package delivery

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/crdcache/crdcache/internal/queue"
	"github.com/crdcache/crdcache/internal/store"
)

// coalescer is the content of a queue that keeps at most one pending notification per object: an entry per
// key. The first pending notification of a key determines its position. A later one changes the entry:
//
//	pending          + next            = result
//	add              + update          = add of the latest state
//	add              + removal         = nothing, because the handler has not received the object
//	update(old, new) + update          = update(old, latest)
//	update(old, new) + removal         = removal
//	deletion         + add, same UID   = update(state that the handler has, latest)
//	removal          + add otherwise   = both
//	left + add       + deletion        = deletion, same UID
//
// A removal is a deletion, or a notification that the object left the shard. Additions of an initial list are
// never merged into an update, because the handler relies on isInInitialList.
//
// A pending list has one entry, as in other queues, and its notifications are created when the handler is
// called. They are then merged with the entry of their key, which is later. This needs the list to precede
// all entries with keys. A list that arrives while such entries are pending is split into entries.
type coalescer struct {
	// queue has at most one element, for all pending entries. Its length is that of their notifications.
	queue *queue.Queue[Notification]
	now   func() time.Time
	began time.Time
	// handling is the arrival time of the notification being handled, in nanoseconds since began, or 0.
	handling  atomic.Int64
	coalesced atomic.Int64

	mu struct {
		sync.Mutex
		entries     map[string]*pendingEntry
		first, last *pendingEntry
		// lists is the number of pending lists. differing is set if one of them has more than additions.
		lists     int
		differing bool
		scheduled bool // the queue has the element
		closed    bool
		// spare is an entry for reuse. maxEntries is the largest number of entries since entries was created.
		spare      *pendingEntry
		maxEntries int
	}
}

// pendingEntry has the pending notifications of a key: a removal, an addition or update, or a removal and an
// addition. Without a key it has a list or a mark.
type pendingEntry struct {
	key string
	// removal is pending if removed is set. Its current item is the state that the handler has, or nil if
	// that state may equal the final state.
	removal, change  Notification
	removed, changed bool
	list             *notificationCursor
	queuedAt         int64 // arrival of the first notification, in nanoseconds since coalescer.began
	previous, next   *pendingEntry
}

func newCoalescer(q *queue.Queue[Notification], now func() time.Time) *coalescer {
	c := &coalescer{queue: q, now: now, began: now().Add(-1)}
	c.mu.entries = map[string]*pendingEntry{}
	return c
}

// push adds notifications. It drops resyncs if the handler does not take part in them.
func (c *coalescer) push(resyncing bool, notifications ...Notification) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed || c.queue.Closed() {
		return
	}
	for _, n := range notifications {
		switch {
		case n.resync && !resyncing:
		case n.kind == kindMark:
			c.appendLocked(&pendingEntry{change: n, queuedAt: c.elapsed()})
		case n.kind == kindList:
			c.pushListLocked(n.current.(*notificationCursor))
		default:
			c.putLocked(n)
		}
	}
	if c.mu.first != nil && !c.mu.scheduled {
		c.mu.scheduled = true
		c.queue.Push(Notification{kind: kindCoalesced, current: c})
	}
}

func (c *coalescer) pushListLocked(list *notificationCursor) {
	if len(c.mu.entries) > 0 || c.mu.lists > 0 && (c.mu.differing || !list.additionsOnly) {
		for list.remaining > 0 {
			c.putLocked(list.next())
		}
		return
	}
	c.appendLocked(&pendingEntry{list: list, queuedAt: c.elapsed()})
	c.mu.lists++
	c.mu.differing = !list.additionsOnly
	c.queue.AddElements(list.remaining)
}

func (c *coalescer) putLocked(n Notification) {
	key, err := c.keyOfNotification(n)
	if err != nil { // it can be delivered, but not merged
		c.appendLocked(&pendingEntry{change: n, changed: true, queuedAt: c.elapsed()})
		c.queue.AddElements(1)
		return
	}
	e := c.mu.entries[key]
	if e == nil {
		if e = c.mu.spare; e == nil {
			e = &pendingEntry{}
		}
		c.mu.spare, e.key, e.queuedAt = nil, key, c.elapsed()
		e.apply(n)
		c.mu.entries[key] = e
		c.mu.maxEntries = max(c.mu.maxEntries, len(c.mu.entries))
		c.appendLocked(e)
		c.queue.AddElements(1)
		return
	}
	before := e.eventCount()
	e.apply(n)
	after := e.eventCount()
	c.coalesced.Add(int64(before + 1 - after))
	c.queue.AddElements(after - before)
	switch {
	case after == 0:
		c.removeLocked(e)
	case e.changed && e.change.kind == kindAdd && !e.removed:
		// The key is a part of the object's JSON. An older key would retain an older object.
		e.key = key
		c.mu.entries[key] = e
	}
}

func (c *coalescer) keyOfNotification(n Notification) (string, error) {
	if n.kind == kindLostDeletion {
		return n.previous.(*tombstone).key, nil
	}
	return store.KeyOf(n.Item())
}

// apply merges a later notification of the object into the entry.
func (e *pendingEntry) apply(n Notification) {
	switch n.kind {
	case kindAdd:
		if e.changed {
			e.change.current = n.current
			return
		}
		if handlerState := e.handlerItem(); handlerState != nil && !n.initial &&
			store.SameUID(handlerState, n.current) {
			n = Updated(handlerState, n.current, false)
			e.removal, e.removed = Notification{}, false
		}
		e.change, e.changed = n, true
	case kindUpdate:
		if e.changed {
			e.change.current, e.change.resync = n.current, e.change.resync && n.resync
			return
		}
		e.change, e.changed = n, true
	default:
		if e.changed && e.change.kind == kindAdd {
			e.change, e.changed = Notification{}, false
			if e.removed && e.removal.kind == kindLeftShard && n.kind != kindLeftShard &&
				store.SameUID(e.removal.previous, n.Item()) {
				n.current, e.removal = e.removal.previous, n
			}
			return
		}
		if e.changed {
			n.current = e.change.previous
		}
		e.removal, e.removed = n, true
		e.change, e.changed = Notification{}, false
	}
}

// handlerItem returns the state that the handler has of an object while its deletion is pending, and nil
// otherwise. It returns nil for an object that left the shard, because the handler must be notified of that.
func (e *pendingEntry) handlerItem() store.Item {
	switch {
	case !e.removed || e.removal.kind == kindLeftShard:
		return nil
	case e.removal.current != nil:
		return e.removal.current
	}
	return e.removal.Item()
}

// eventCount returns the number of pending notifications. A mark is not an event.
func (e *pendingEntry) eventCount() int {
	count := 0
	if e.removed {
		count++
	}
	if e.changed {
		count++
	}
	return count
}

func (e *pendingEntry) removeFirst() (n Notification) {
	if e.removed {
		n, e.removal, e.removed = e.removal, Notification{}, false
		return n
	}
	n, e.change, e.changed = e.change, Notification{}, false
	return n
}

// next removes the first pending notification, and reports whether there are more. Only the queue's goroutine
// calls it. If no notification is left, it returns a mark without effect.
func (c *coalescer) next() (Notification, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		e := c.mu.first
		if e == nil || c.mu.closed {
			c.mu.scheduled = false
			return newMark(func() {}), false
		}
		var n Notification
		c.handling.Store(e.queuedAt)
		if e.list == nil {
			if n = e.removeFirst(); e.eventCount() == 0 {
				c.removeLocked(e)
			}
		} else {
			list, at := e.list, e.queuedAt
			if n = c.nextOfListLocked(e); c.mu.closed || !list.hasPending && c.mergedLocked(n, at) {
				continue
			}
		}
		c.mu.scheduled = c.mu.first != nil
		return n, c.mu.scheduled
	}
}

// nextOfListLocked returns the next notification of a list. It releases the lock meanwhile, because for a
// new handler, the first notification enumerates the cache.
func (c *coalescer) nextOfListLocked(e *pendingEntry) Notification {
	c.mu.Unlock()
	n := e.list.next()
	c.mu.Lock()
	if e.list.remaining == 0 && !c.mu.closed {
		c.removeLocked(e)
		c.mu.lists--
	}
	return n
}

// mergedLocked merges the last notification of a list about a key with the later ones, if there are any. They
// become the first entry, with the arrival time of the list.
func (c *coalescer) mergedLocked(n Notification, at int64) bool {
	if len(c.mu.entries) == 0 {
		return false
	}
	key, err := c.keyOfNotification(n)
	if err != nil {
		return false
	}
	latest := c.mu.entries[key]
	if latest == nil {
		return false
	}
	merged := pendingEntry{}
	merged.apply(n)
	if latest.removed {
		merged.apply(latest.removal)
	}
	if latest.changed {
		merged.apply(latest.change)
	}
	before, after := 1+latest.eventCount(), merged.eventCount()
	c.coalesced.Add(int64(before - after))
	c.queue.AddElements(after - before)
	if after == 0 {
		c.removeLocked(latest)
		return true
	}
	c.unlinkLocked(latest)
	latest.removal, latest.removed, latest.change, latest.changed = merged.removal, merged.removed,
		merged.change, merged.changed
	latest.queuedAt = at
	if latest.next = c.mu.first; latest.next == nil {
		c.mu.last = latest
	} else {
		latest.next.previous = latest
	}
	c.mu.first = latest
	return true
}

// wrap returns handle with the end of the notification's age. If handle ends its goroutine (runtime.Goexit),
// which closes the queue, the coalescer drops its entries.
func (c *coalescer) wrap(handle func(Notification)) func(Notification) {
	return func(n Notification) {
		returned := false
		defer func() {
			if !returned {
				c.close()
			}
		}()
		handle(n)
		returned = true
		c.handling.Store(0)
	}
}

// lag returns the age of the oldest pending notification.
func (c *coalescer) lag() time.Duration {
	at := c.handling.Load()
	if at == 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.mu.first == nil {
			return 0
		}
		at = c.mu.first.queuedAt
	}
	return time.Duration(max(c.elapsed()-at, 0))
}

// close drops all pending notifications. The queue's length remains the number of dropped notifications.
func (c *coalescer) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.closed = true
	c.mu.entries, c.mu.first, c.mu.last, c.mu.spare = nil, nil, nil, nil
	c.handling.Store(0)
}

func (c *coalescer) elapsed() int64 { return int64(c.now().Sub(c.began)) }

func (c *coalescer) appendLocked(e *pendingEntry) {
	if e.previous = c.mu.last; e.previous == nil {
		c.mu.first = e
	} else {
		e.previous.next = e
	}
	c.mu.last = e
}

func (c *coalescer) unlinkLocked(e *pendingEntry) {
	if e.previous == nil {
		c.mu.first = e.next
	} else {
		e.previous.next = e.next
	}
	if e.next == nil {
		c.mu.last = e.previous
	} else {
		e.next.previous = e.previous
	}
	e.previous, e.next = nil, nil
}

// removeLocked removes an entry without notifications.
func (c *coalescer) removeLocked(e *pendingEntry) {
	c.unlinkLocked(e)
	if c.mu.entries[e.key] == e {
		delete(c.mu.entries, e.key)
	}
	if len(c.mu.entries) == 0 && c.mu.maxEntries > maxRetainedEntries {
		c.mu.entries, c.mu.maxEntries = map[string]*pendingEntry{}, 0
	}
	*e = pendingEntry{}
	c.mu.spare = e
}

// maxRetainedEntries is the largest size of the map of entries that is retained after a burst.
const maxRetainedEntries = 1024
