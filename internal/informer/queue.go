package informer

import (
	"sync"
	"sync/atomic"
)

// queueKeep is how many notifications' room a queue keeps after a burst.
const queueKeep = 1024

// queue is the unbounded, ordered line of notifications of one subscriber. Producers append to one slice; the
// consumer takes the whole slice and works it off without a lock, handing back its old one: no allocation and
// no goroutine switch per notification.
type queue struct {
	// depth counts the events (not the marks) that are queued or being handled.
	depth atomic.Int64
	// closed is set for good by close; what is still queued is then never handed out.
	closed atomic.Bool

	mu struct {
		sync.Mutex
		waiting []notification
	}
	// filled wakes the consumer.
	filled sync.Cond
}

func newQueue() *queue {
	q := &queue{}
	q.filled.L = &q.mu
	return q
}

// push appends notifications in their order and never blocks on the consumer. A closed queue ignores them.
func (q *queue) push(notifications ...notification) {
	events := int64(0)
	for i := range notifications {
		if notifications[i].kind != kindMark {
			events++
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed.Load() {
		return
	}
	q.depth.Add(events)
	q.mu.waiting = append(q.mu.waiting, notifications...)
	q.filled.Signal()
}

// take waits for notifications and returns all of them, or false when the queue is closed. spare is the slice
// returned before, done with and zeroed, to be filled next.
func (q *queue) take(spare []notification) ([]notification, bool) {
	if cap(spare) > queueKeep {
		spare = nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.mu.waiting) == 0 && !q.closed.Load() {
		q.filled.Wait()
	}
	if q.closed.Load() {
		return nil, false
	}
	batch := q.mu.waiting
	q.mu.waiting = spare[:0]
	return batch, true
}

// close lets the consumer end after the notification at hand and drops the rest. Safe to call more than once.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed.Store(true)
	q.mu.waiting = nil
	q.filled.Broadcast()
}
