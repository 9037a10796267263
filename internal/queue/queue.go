// Package queue has the queues of the engine, which are unbounded, so that who pushes never waits for who is
// called: a Queue of elements for one consumer, and Calls, which makes calls on a goroutine of its own. How
// much waits is for people to see.
package queue

import (
	"sync"
	"sync/atomic"
	"time"
)

// roomKept is how many elements' room a queue keeps after a burst.
const roomKept = 1024

// quiet is how long nothing must come for the goroutine of a queue to end.
const quiet = 5 * time.Second

// together is how far apart in time pushes may be that count as one for Lag.
const together = time.Millisecond

// Queue is an unbounded, ordered line of elements for one consumer. Producers append to one slice; the
// consumer takes the whole slice and works it off without a lock, handing back its old one: no allocation and
// no goroutine switch for each element. The consumer's goroutine ends when nothing comes, and another one
// begins with what comes next, so that it costs little to wait for what seldom happens. All methods are safe
// for concurrent use; Start is called once.
type Queue[T any] struct {
	now func() time.Time
	// began is a nanosecond before New.
	began  time.Time
	counts func(*T) int
	next   func(*T) (T, bool)
	// length counts the elements that count and are queued or being handled.
	length atomic.Int64
	// closed is set for good by Close; what is still queued is then never handled.
	closed atomic.Bool
	// handling is when the element that is being handled was pushed, in nanoseconds since began, so that a
	// clock that is set does not count; 0: there is none.
	handling atomic.Int64

	mu struct {
		sync.Mutex
		waiting  []T
		arrivals []arrival // of waiting, in their order
		// handleOne and ended are those of Start; nil before.
		handleOne func(T)
		ended     func()
		// running says that there is a goroutine, busy that elements have come since this was last looked at,
		// and leaving that the goroutine is to end if none waits.
		running, busy, leaving bool
		timer                  *quietTimer[T] // nil without a goroutine
	}
	// filled wakes the consumer.
	filled sync.Cond
}

// arrival is when so many elements were pushed.
type arrival struct {
	at       time.Time
	elements int
}

// New returns an empty queue. now tells the time for Lag. counts says how much of Len each element is; nil:
// one. An element can stand for many, which need not be in memory then: next takes the first of them out of
// it, which is what is handled, and reports whether there are more; nil: each stands for itself.
func New[T any](now func() time.Time, counts func(*T) int, next func(*T) (T, bool)) *Queue[T] {
	q := &Queue[T]{now: now, began: now().Add(-1), counts: counts, next: next}
	q.filled.L = &q.mu
	return q
}

// Push appends elements in their order and never waits for the consumer. A closed queue ignores them.
func (q *Queue[T]) Push(elements ...T) {
	if len(elements) == 0 {
		return
	}
	counted := int64(len(elements))
	if q.counts != nil {
		counted = 0
		for i := range elements {
			counted += int64(q.counts(&elements[i]))
		}
	}
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed.Load() {
		return
	}
	q.length.Add(counted)
	q.mu.waiting = append(q.mu.waiting, elements...)
	if last := len(q.mu.arrivals) - 1; last >= 0 && now.Sub(q.mu.arrivals[last].at) < together {
		q.mu.arrivals[last].elements += len(elements)
	} else {
		q.mu.arrivals = append(q.mu.arrivals, arrival{now, len(elements)})
	}
	q.mu.busy = true
	if q.mu.running {
		q.filled.Signal()
	} else if q.mu.handleOne != nil {
		q.runLocked()
	}
}

// Len counts the elements that wait, with the one being handled. After Close it is the number of those that
// were dropped.
func (q *Queue[T]) Len() int { return int(q.length.Load()) }

// Lag is how long ago the oldest element was pushed that has not been handled, to about a millisecond; 0 when
// there is none, and after Close.
func (q *Queue[T]) Lag() time.Duration {
	if at := q.handling.Load(); at != 0 {
		return max(q.now().Sub(q.began)-time.Duration(at), 0)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.mu.arrivals) == 0 {
		return 0
	}
	return max(q.now().Sub(q.mu.arrivals[0].at), 0)
}

// Closed reports whether Close has been called.
func (q *Queue[T]) Closed() bool { return q.closed.Load() }

// Close drops what waits. After the element at hand nothing is handled any more. It may be called more than
// once.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed.Swap(true) {
		return
	}
	q.mu.waiting, q.mu.arrivals = nil, nil
	if q.mu.running {
		q.filled.Signal()
	} else if q.mu.ended != nil {
		q.mu.ended()
	}
}

// Start has handle called for one element after the other, on a goroutine of the queue, until the queue is
// closed. ended is called once after that, with locks held: by Close, or when the last call of handle has
// returned. A call that ends its goroutine (runtime.Goexit, as a test that fails does) closes the queue.
func (q *Queue[T]) Start(handle func(T), ended func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.handleOne, q.mu.ended = handle, ended
	switch {
	case q.closed.Load():
		ended()
	case len(q.mu.waiting) > 0:
		q.runLocked()
	}
}

// runLocked begins a goroutine.
func (q *Queue[T]) runLocked() {
	q.mu.running, q.mu.leaving = true, false
	go q.run(q.mu.handleOne) // ended by Close, or by the timer when nothing comes
	q.watchQuietLocked()
}

// watchQuietLocked ends the goroutine when nothing comes for a while. It costs a timer while there is a
// goroutine, and nothing for an element.
func (q *Queue[T]) watchQuietLocked() {
	q.mu.timer = &quietTimer[T]{}
	q.mu.timer.queue.Store(q)
	q.mu.timer.timer = time.AfterFunc(quiet, q.mu.timer.fire)
}

// quietTimer ends the goroutine of a quiet queue. The runtime may keep a timer for a while after Stop, so
// that the timer refers to the queue, and with it to its consumer, only while the goroutine runs.
type quietTimer[T any] struct {
	queue atomic.Pointer[Queue[T]]
	timer *time.Timer
}

func (t *quietTimer[T]) fire() {
	q := t.queue.Load()
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.timer != t {
		return
	}
	if q.mu.busy || len(q.mu.waiting) > 0 {
		q.mu.busy = false
		t.timer.Reset(quiet)
		return
	}
	q.mu.leaving = true
	q.filled.Signal()
}

func (t *quietTimer[T]) stop() {
	t.queue.Store(nil)
	t.timer.Stop()
}

// run handles elements until the queue is closed, or empty for long.
func (q *Queue[T]) run(handle func(T)) {
	left := false
	defer func() {
		if !left {
			q.Close()
			q.take(nil, nil) // ends it
		}
	}()
	var batch []T
	var arrivals []arrival
	for {
		var ok bool
		if batch, arrivals, ok = q.take(batch, arrivals); !ok {
			left = true
			return
		}
		first := 0
		for _, a := range arrivals {
			q.handlingSince(a.at)
			if !q.handle(batch[first:first+a.elements], handle) {
				break // take ends it
			}
			first += a.elements
		}
	}
}

// handlingSince notes when the elements were pushed that are handled next.
func (q *Queue[T]) handlingSince(pushed time.Time) { q.handling.Store(int64(pushed.Sub(q.began))) }

// handle handles elements unless the queue is closed; then it returns false.
func (q *Queue[T]) handle(elements []T, handle func(T)) bool {
	for i := range elements {
		for more := true; more; {
			if q.closed.Load() {
				return false
			}
			var e T
			e, more = q.first(&elements[i])
			handle(e)
			if q.counts == nil {
				q.length.Add(-1)
			} else if n := q.counts(&e); n > 0 {
				q.length.Add(int64(-n))
			}
		}
	}
	return true
}

// first takes out of an element what is to be handled next, and reports whether there is more in it.
func (q *Queue[T]) first(from *T) (first T, more bool) {
	if q.next != nil {
		first, more = q.next(from)
	} else {
		first = *from
	}
	if !more {
		var none T
		*from = none // what has been handled must not be kept alive by what waits behind it
	}
	return first, more
}

// take waits for elements and returns all of them, or false when the goroutine is to end. The slices are
// those returned before, done with, to be filled next.
func (q *Queue[T]) take(spare []T, times []arrival) ([]T, []arrival, bool) {
	if cap(spare) > roomKept {
		spare = nil
	}
	if cap(times) > roomKept {
		times = nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.mu.waiting) == 0 && !q.closed.Load() && !q.mu.leaving {
		q.handling.Store(0)
		q.filled.Wait()
	}
	closed := q.closed.Load()
	if closed || len(q.mu.waiting) == 0 {
		q.handling.Store(0)
		q.mu.running = false
		q.mu.waiting, q.mu.arrivals = nil, nil // their room
		q.mu.timer.stop()
		q.mu.timer = nil
		if closed {
			q.mu.ended()
		}
		return nil, nil, false
	}
	if q.mu.leaving { // what came is in time, and the timer has run out
		q.mu.leaving = false
		q.watchQuietLocked()
	}
	batch, arrivals := q.mu.waiting, q.mu.arrivals
	q.handlingSince(arrivals[0].at)
	q.mu.waiting, q.mu.arrivals = spare[:0], times[:0]
	return batch, arrivals, true
}
