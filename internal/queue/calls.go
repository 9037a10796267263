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
// goroutine only while there are calls. A call that ends its goroutine (runtime.Goexit) closes it.
type Calls struct {
	queue *Queue[func()]
	// closing is closed by Close, done after Close when the last call has returned.
	closing, done chan struct{}
	close         sync.Once
}

// NewCalls returns an empty queue.
func NewCalls() *Calls {
	c := &Calls{queue: New[func()](time.Now, nil, nil), closing: make(chan struct{}),
		done: make(chan struct{})}
	c.queue.endsWhenEmpty = true
	c.queue.Start(c.run, func() { close(c.done) })
	return c
}

// Push appends calls. It does nothing after Close.
func (c *Calls) Push(calls ...func()) { c.queue.Push(calls...) }

// Pending returns the number of waiting calls, including the one in progress. It is 0 after the end.
func (c *Calls) Pending() int {
	if IsClosed(c.done) {
		return 0
	}
	return c.queue.Len()
}

// Close drops waiting calls. It is idempotent, and does not wait for a running call, so calls can use it.
func (c *Calls) Close() {
	c.close.Do(func() {
		close(c.closing)
		c.queue.Close()
	})
}

// Done returns a channel that is closed after Close, when the last call has returned.
func (c *Calls) Done() <-chan struct{} { return c.done }

// Drain waits until all calls that were pushed before have returned, or the queue has ended. If ctx ends
// first, it returns the cause.
func (c *Calls) Drain(ctx context.Context) error {
	if c.Pending() == 0 {
		return nil
	}
	drained := make(chan struct{})
	c.Push(func() { close(drained) })
	select {
	case <-drained:
	case <-c.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// run runs a call, and pauses if it has panicked.
func (c *Calls) run(call func()) {
	if runRecovering(call) {
		return
	}
	timer := time.NewTimer(panicPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.closing:
	}
}

// runRecovering runs a call. It returns false if the call panicked and the process survives panics
// (utilruntime.ReallyCrash is false; the default is true).
func runRecovering(call func()) (ok bool) {
	defer utilruntime.HandleCrash()
	call()
	return true
}

// Wake wakes the receiver of a channel with a capacity of one.
func Wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // one is pending
	}
}

// IsClosed reports whether a channel without elements is closed.
func IsClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
