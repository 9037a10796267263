// Package queue contains unbounded queues, so that producers never wait for consumers: Queue for elements
// with one consumer, and Calls for function calls. The number of waiting elements is exposed for monitoring.
package queue

import (
	"sync"
	"sync/atomic"
	"time"
)

// retainedCapacity is the largest capacity that a queue retains after a burst.
const retainedCapacity = 1024

// idleTimeout is the time without elements after which a queue's goroutine ends.
const idleTimeout = 5 * time.Second

// arrivalResolution is the time within which pushes share one arrival time for Lag.
const arrivalResolution = time.Millisecond

// Queue is an unbounded FIFO queue of elements for one consumer. Producers append to one slice. The consumer
// takes the whole slice, handles its elements without a lock, and returns its old slice, so that elements
// cost neither an allocation nor a goroutine switch. The consumer's goroutine ends when the queue is idle,
// and starts again with the next element. All methods are safe for concurrent use; Start is called once.
type Queue[T any] struct {
	now func() time.Time
	// origin is one nanosecond before New, so that arrival times are never 0.
	origin     time.Time
	lenOf      func(*T) int
	removeNext func(*T) (T, bool)
	// endsWhenEmpty ends the goroutine as soon as the queue is empty.
	endsWhenEmpty bool
	// length is the sum of counts over the elements that are queued or being handled.
	length atomic.Int64
	// closed is set by Close. Elements that are still queued are then never handled.
	closed atomic.Bool
	// handlingArrival is the arrival time of the element being handled, in monotonic nanoseconds since
	// origin; 0 if no element is being handled.
	handlingArrival atomic.Int64

	mu struct {
		sync.Mutex
		waiting  []T
		arrivals []arrival // of waiting, in order
		// handleOne and ended are the arguments of Start. They are nil before Start.
		handleOne func(T)
		onEnd     func()
		// hasGoroutine is set while the goroutine exists. isRecentlyUsed is set if elements arrived since
		// the timer last fired. mustEnd makes the goroutine end when the queue is empty.
		hasGoroutine, isRecentlyUsed, mustEnd bool
		timer                                 *idleTimer[T] // nil without a goroutine
	}
	notEmpty sync.Cond // wakes the consumer
}

// arrival is the time when a number of elements was pushed.
type arrival struct {
	pushedAt time.Time
	elements int
}

// New returns an empty queue. now returns the time for Lag. lenOf returns the contribution of an element to
// Len; if nil, each element counts as one. removeNext expands an element that represents several elements: it
// removes and returns the first of them, and reports whether there are more. Nil expands nothing.
func New[T any](now func() time.Time, lenOf func(*T) int, removeNext func(*T) (T, bool)) *Queue[T] {
	q := &Queue[T]{now: now, origin: now().Add(-1), lenOf: lenOf, removeNext: removeNext}
	q.notEmpty.L = &q.mu
	return q
}

// Push appends elements and never waits for the consumer. A closed queue ignores them.
func (q *Queue[T]) Push(elements ...T) {
	if len(elements) == 0 {
		return
	}
	counted := int64(len(elements))
	if q.lenOf != nil {
		counted = 0
		for i := range elements {
			counted += int64(q.lenOf(&elements[i]))
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
	last := len(q.mu.arrivals) - 1
	if last >= 0 && now.Sub(q.mu.arrivals[last].pushedAt) < arrivalResolution {
		q.mu.arrivals[last].elements += len(elements)
	} else {
		q.mu.arrivals = append(q.mu.arrivals, arrival{now, len(elements)})
	}
	q.mu.isRecentlyUsed = true
	if q.mu.hasGoroutine {
		q.notEmpty.Signal()
	} else if q.mu.handleOne != nil {
		q.runLocked()
	}
}

// Len returns the number of queued elements, including the one being handled. After Close it is the number of
// dropped elements.
func (q *Queue[T]) Len() int { return int(q.length.Load()) }

// AddElements adds to Len. It is for an element that represents several, whose number changes after Push.
func (q *Queue[T]) AddElements(elements int) {
	if elements != 0 {
		q.length.Add(int64(elements))
	}
}

// Lag returns the age of the oldest element that has not been handled, to about a millisecond. It is 0 if
// there is none, and after Close.
func (q *Queue[T]) Lag() time.Duration {
	if at := q.handlingArrival.Load(); at != 0 {
		return max(q.now().Sub(q.origin)-time.Duration(at), 0)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.mu.arrivals) == 0 {
		return 0
	}
	return max(q.now().Sub(q.mu.arrivals[0].pushedAt), 0)
}

// Closed reports whether Close has been called.
func (q *Queue[T]) Closed() bool { return q.closed.Load() }

// Close drops the queued elements. No element is handled after the current one. It is idempotent.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed.Swap(true) {
		return
	}
	q.mu.waiting, q.mu.arrivals = nil, nil
	if q.mu.hasGoroutine {
		q.notEmpty.Signal()
	} else if q.mu.onEnd != nil {
		q.mu.onEnd()
	}
}

// Start calls handle for each element in order, on a goroutine of the queue, until the queue is closed. It
// then calls onEnd once, with locks held: in Close, or after the last call of handle. A call that ends its
// goroutine (runtime.Goexit, as in a failing test) closes the queue.
func (q *Queue[T]) Start(handle func(T), onEnd func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.handleOne, q.mu.onEnd = handle, onEnd
	switch {
	case q.closed.Load():
		onEnd()
	case len(q.mu.waiting) > 0:
		q.runLocked()
	}
}

// runLocked starts a goroutine.
func (q *Queue[T]) runLocked() {
	q.mu.hasGoroutine, q.mu.mustEnd = true, q.endsWhenEmpty
	go q.run(q.mu.handleOne) // ended by Close, or when the queue is idle
	if !q.endsWhenEmpty {
		q.startIdleTimerLocked()
	}
}

// startIdleTimerLocked starts the timer that ends the goroutine when the queue is idle. Pushes do not reset
// the timer, so that they stay cheap.
func (q *Queue[T]) startIdleTimerLocked() {
	q.mu.timer = &idleTimer[T]{}
	q.mu.timer.queue.Store(q)
	q.mu.timer.timer = time.AfterFunc(idleTimeout, q.mu.timer.fire)
}

// idleTimer ends the goroutine of an idle queue. The runtime may retain a timer after Stop, so the timer
// refers to the queue, and thus its consumer, only while the goroutine runs.
type idleTimer[T any] struct {
	queue atomic.Pointer[Queue[T]]
	timer *time.Timer
}

func (t *idleTimer[T]) fire() {
	q := t.queue.Load()
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.timer != t {
		return
	}
	if q.mu.isRecentlyUsed || len(q.mu.waiting) > 0 {
		q.mu.isRecentlyUsed = false
		t.timer.Reset(idleTimeout)
		return
	}
	q.mu.mustEnd = true
	q.notEmpty.Signal()
}

// run handles elements until the queue is closed, or idle for idleTimeout.
func (q *Queue[T]) run(handle func(T)) {
	finished := false
	defer func() {
		if !finished {
			q.Close()
			q.takeAll(nil, nil) // ends the queue
		}
	}()
	var batch []T
	var arrivals []arrival
	for {
		var ok bool
		if batch, arrivals, ok = q.takeAll(batch, arrivals); !ok {
			finished = true
			return
		}
		first := 0
		for _, a := range arrivals {
			q.handlingSince(a.pushedAt)
			if !q.handle(batch[first:first+a.elements], handle) {
				break // takeAll then ends the goroutine
			}
			first += a.elements
		}
	}
}

// handlingSince sets the arrival time of the elements handled next.
func (q *Queue[T]) handlingSince(pushed time.Time) {
	q.handlingArrival.Store(int64(pushed.Sub(q.origin)))
}

// handle handles elements. It returns false if the queue is closed.
func (q *Queue[T]) handle(elements []T, handle func(T)) bool {
	var e T // on the heap, because lenOf gets its address
	for i := range elements {
		for more := true; more; {
			if q.closed.Load() {
				return false
			}
			e, more = q.removeFirst(&elements[i])
			handle(e)
			if q.lenOf == nil {
				q.length.Add(-1)
			} else if n := q.lenOf(&e); n > 0 {
				q.length.Add(int64(-n))
			}
		}
	}
	return true
}

// removeFirst removes the first element that from represents, and reports whether from represents more.
func (q *Queue[T]) removeFirst(from *T) (first T, more bool) {
	if q.removeNext != nil {
		first, more = q.removeNext(from)
	} else {
		first = *from
	}
	if !more {
		var none T
		*from = none // do not retain handled elements
	}
	return first, more
}

// takeAll waits for elements and returns all of them, or false if the goroutine has to end. spareElements
// and spareArrivals are the slices of the previous call, for reuse.
func (q *Queue[T]) takeAll(spareElements []T, spareArrivals []arrival) ([]T, []arrival, bool) {
	if cap(spareElements) > retainedCapacity {
		spareElements = nil
	}
	if cap(spareArrivals) > retainedCapacity {
		spareArrivals = nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.mu.waiting) == 0 && !q.closed.Load() && !q.mu.mustEnd {
		q.handlingArrival.Store(0)
		q.notEmpty.Wait()
	}
	closed := q.closed.Load()
	if closed || len(q.mu.waiting) == 0 {
		q.handlingArrival.Store(0)
		q.mu.hasGoroutine = false
		q.mu.waiting, q.mu.arrivals = nil, nil // free their memory
		if q.mu.timer != nil {
			q.mu.timer.queue.Store(nil)
			q.mu.timer.timer.Stop()
			q.mu.timer = nil
		}
		if closed {
			q.mu.onEnd()
		}
		return nil, nil, false
	}
	if q.mu.mustEnd && !q.endsWhenEmpty { // an element arrived in time, but the timer has fired
		q.mu.mustEnd = false
		q.startIdleTimerLocked()
	}
	batch, arrivals := q.mu.waiting, q.mu.arrivals
	q.handlingSince(arrivals[0].pushedAt)
	q.mu.waiting, q.mu.arrivals = spareElements[:0], spareArrivals[:0]
	return batch, arrivals, true
}
