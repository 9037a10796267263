package queue

import (
	"context"
	"sync"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// panicPause is how long a queue rests after a call that panicked, where the process survives that.
const panicPause = time.Second

// Calls makes calls in order, one at a time, and lets nobody wait for them. It has no bound, and a goroutine
// only while there is something to call. A call that ends its goroutine (runtime.Goexit, as a test that fails
// does) closes it.
type Calls struct {
	// quit is closed by close.
	quit chan struct{}
	// done is closed when nothing is called any more after close.
	done chan struct{}

	mu struct {
		sync.Mutex
		calls   []func()
		running bool
		closed  bool
		idle    chan struct{} // closed when the queue runs empty; nil unless somebody waits
	}
}

// NewCalls returns an empty queue.
func NewCalls() *Calls {
	return &Calls{quit: make(chan struct{}), done: make(chan struct{})}
}

// Push appends calls. After close it does nothing.
func (q *Calls) Push(calls ...func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.closed || len(calls) == 0 {
		return
	}
	q.mu.calls = append(q.mu.calls, calls...)
	if !q.mu.running {
		q.mu.running = true
		go q.run() // ends when the queue is empty or closed
	}
}

// Pending returns how many calls wait, with the one under way.
func (q *Calls) Pending() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.mu.calls)
}

// Close drops what waits and does not wait for a call under way; Done tells of its end. It may be called
// again, and from inside a call.
func (q *Calls) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.closed {
		return
	}
	q.mu.closed = true
	close(q.quit)
	if !q.mu.running {
		close(q.done)
	}
}

// Drain waits until the queue is empty or closed, or ctx has ended: then it returns the cause.
func (q *Calls) Drain(ctx context.Context) error {
	q.mu.Lock()
	if !q.mu.running {
		q.mu.Unlock()
		return nil
	}
	if q.mu.idle == nil {
		q.mu.idle = make(chan struct{})
	}
	idle := q.mu.idle
	q.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (q *Calls) run() {
	left := false
	defer func() {
		if !left {
			q.Close()
			q.next() // ends it
		}
	}()
	for {
		call, ok := q.next()
		if !ok {
			left = true
			return
		}
		if !survives(call) {
			q.pause()
		}
		q.mu.Lock()
		q.mu.calls[0] = nil
		q.mu.calls = q.mu.calls[1:]
		q.mu.Unlock()
	}
}

// next returns the first call, which stays in the queue until it is over. Without one the goroutine must end.
func (q *Calls) next() (func(), bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.mu.calls) > 0 && !q.mu.closed {
		return q.mu.calls[0], true
	}
	q.mu.calls, q.mu.running = nil, false
	if q.mu.idle != nil {
		close(q.mu.idle)
		q.mu.idle = nil
	}
	if q.mu.closed {
		close(q.done)
	}
	return nil, false
}

// pause rests, unless the queue is closed.
func (q *Calls) pause() {
	timer := time.NewTimer(panicPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-q.quit:
	}
}

// survives makes a call and returns false when it panicked and the process is set to survive that
// (utilruntime.ReallyCrash is off; it is on by default).
func survives(call func()) (ok bool) {
	defer utilruntime.HandleCrash()
	call()
	return true
}

// Done is closed when nothing is called any more, after Close.
func (q *Calls) Done() <-chan struct{} { return q.done }

// Running reports whether a goroutine makes calls.
func (q *Calls) Running() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.running
}
