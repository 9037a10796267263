// Package queue has the queues of the engine, which are unbounded, so that who pushes never waits for who is called: a
// Queue of elements for one consumer, and Calls, which makes calls on a goroutine of its own. How much waits is for
// people to see.
package queue

import (
	"sync"
	"sync/atomic"
	"time"
)

// roomKept is how many elements' room a queue keeps after a burst.
const roomKept = 1024

// together is how far apart in time pushes may be that count as one for Lag.
const together = time.Millisecond

// Queue is an unbounded, ordered line of elements for one consumer. Producers append to one slice; the consumer takes the
// whole slice and works it off without a lock, handing back its old one: no allocation and no goroutine switch for
// each element. All methods are safe for concurrent use; Run is called once.
type Queue[T any] struct {
	now    func() time.Time
	counts func(*T) bool
	// length counts the elements that count and are queued or being handled.
	length atomic.Int64
	// closed is set for good by Close; what is still queued is then never handled.
	closed atomic.Bool
	// handling is when the element that is being handled was pushed, in nanoseconds since the epoch; 0: there is none.
	handling atomic.Int64

	mu struct {
		sync.Mutex
		waiting  []T
		arrivals []arrival // of waiting, in their order
	}
	// filled wakes the consumer.
	filled sync.Cond
}

// arrival is when so many elements were pushed.
type arrival struct {
	at       time.Time
	elements int
}

// New returns an empty queue. now tells the time for Lag. counts says which elements Len counts; nil: all.
func New[T any](now func() time.Time, counts func(*T) bool) *Queue[T] {
	q := &Queue[T]{now: now, counts: counts}
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
			if q.counts(&elements[i]) {
				counted++
			}
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
	q.filled.Signal()
}

// Len counts the elements that wait, with the one being handled. After Close it is the number of those that were dropped.
func (q *Queue[T]) Len() int { return int(q.length.Load()) }

// Lag is how long ago the oldest element was pushed that has not been handled, to about a millisecond; 0 when there is
// none, and after Close.
func (q *Queue[T]) Lag() time.Duration {
	if at := q.handling.Load(); at != 0 {
		return max(q.now().Sub(time.Unix(0, at)), 0)
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

// Close lets Run end after the element at hand and drops the rest. It may be called more than once.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed.Store(true)
	q.mu.waiting, q.mu.arrivals = nil, nil
	q.filled.Broadcast()
}

// Run calls handle for one element after the other until the queue is closed.
func (q *Queue[T]) Run(handle func(T)) {
	var batch []T
	var arrivals []arrival
	defer q.handling.Store(0)
	for {
		var ok bool
		if batch, arrivals, ok = q.take(batch, arrivals); !ok {
			return
		}
		first := 0
		for _, a := range arrivals {
			q.handling.Store(a.at.UnixNano())
			if !q.handle(batch[first:first+a.elements], handle) {
				return
			}
			first += a.elements
		}
	}
}

// handle handles elements unless the queue is closed; then it returns false.
func (q *Queue[T]) handle(elements []T, handle func(T)) bool {
	for i := range elements {
		if q.closed.Load() {
			return false
		}
		e := elements[i]
		var none T
		elements[i] = none // what has been handled must not be kept alive by what waits behind it
		handle(e)
		if q.counts == nil || q.counts(&e) {
			q.length.Add(-1)
		}
	}
	return true
}

// take waits for elements and returns all of them, or false when the queue is closed. The slices are those returned
// before, done with, to be filled next.
func (q *Queue[T]) take(spare []T, times []arrival) ([]T, []arrival, bool) {
	if cap(spare) > roomKept {
		spare = nil
	}
	if cap(times) > roomKept {
		times = nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.mu.waiting) == 0 && !q.closed.Load() {
		q.handling.Store(0)
		q.filled.Wait()
	}
	if q.closed.Load() {
		return nil, nil, false
	}
	batch, arrivals := q.mu.waiting, q.mu.arrivals
	q.handling.Store(arrivals[0].at.UnixNano())
	q.mu.waiting, q.mu.arrivals = spare[:0], times[:0]
	return batch, arrivals, true
}
