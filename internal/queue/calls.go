package queue

import (
	"context"
	"sync"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// panicPause is the pause after a call that panicked, if the process survives panics.
const panicPause = time.Second

// Calls runs functions in order, one at a time, without blocking the caller. It is unbounded, and has a
// goroutine only while there are calls. A call that ends its goroutine (runtime.Goexit, as in a failing test)
// closes it.
type Calls struct {
	// quit is closed by Close.
	quit chan struct{}
	// done is closed after Close, when the last call has returned.
	done chan struct{}

	mu struct {
		sync.Mutex
		calls   []func()
		running bool
		closed  bool
		idle    chan struct{} // closed when the queue is empty; nil without waiters
	}
}

// NewCalls returns an empty queue.
func NewCalls() *Calls {
	return &Calls{quit: make(chan struct{}), done: make(chan struct{})}
}

// Push appends calls. It does nothing after Close.
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

// Pending returns the number of waiting calls, including the one in progress.
func (q *Calls) Pending() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.mu.calls)
}

// Close drops waiting calls. It does not wait for a call in progress (see Done), so that calls can use it. It
// is idempotent.
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

// Drain waits until the queue is empty or closed. If ctx ends first, it returns the cause.
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
	finished := false
	defer func() {
		if !finished {
			q.Close()
			q.next() // ends the queue
		}
	}()
	for {
		call, ok := q.next()
		if !ok {
			finished = true
			return
		}
		if !runRecovering(call) {
			q.pause()
		}
		q.mu.Lock()
		q.mu.calls[0] = nil
		q.mu.calls = q.mu.calls[1:]
		q.mu.Unlock()
	}
}

// next returns the first call, which remains in the queue until it returns. Without one it returns false, and
// the goroutine must end.
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

// pause waits, unless the queue is closed.
func (q *Calls) pause() {
	timer := time.NewTimer(panicPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-q.quit:
	}
}

// runRecovering runs a call. It returns false if the call panicked and the process survives panics
// (utilruntime.ReallyCrash is false; the default is true).
func runRecovering(call func()) (ok bool) {
	defer utilruntime.HandleCrash()
	call()
	return true
}

// Done returns a channel that is closed after Close, when the last call has returned.
func (q *Calls) Done() <-chan struct{} { return q.done }

// Running reports whether the queue has a goroutine.
func (q *Calls) Running() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.running
}
