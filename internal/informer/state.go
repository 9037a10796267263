package informer

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// State is a state in the life cycle of an Informer.
type State int

const (
	// StateNew precedes the first incarnation. Transform and watch error handler can still be set.
	StateNew State = iota
	// StateRunning is the state while an incarnation runs.
	StateRunning
	// StateIdle is the state between two incarnations. Handlers still process their queues.
	StateIdle
	// StateStopped is final.
	StateStopped
)

// checkRun returns an error unless an incarnation can begin.
//
//	New ──run──▶ Running ──end──▶ Idle ──run──▶ Running …
//	 └──stop──┬─────┴───stop──┬─────┘
//	          ▼               ▼
//	               Stopped
func (s State) checkRun() error {
	switch s {
	case StateRunning:
		return ErrRunning
	case StateStopped:
		return ErrStopped
	}
	return nil
}

// syncPoint is reached once, when the first list has been stored (informer) or delivered (handler).
type syncPoint struct {
	once sync.Once
	done chan struct{}
}

func newSyncPoint() *syncPoint { return &syncPoint{done: make(chan struct{})} }

func (p *syncPoint) markReached() { p.once.Do(func() { close(p.done) }) }

func (p *syncPoint) reached() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// wait waits until the point is reached. It returns true if end is closed first, or the cause of ctx.
func (p *syncPoint) wait(ctx context.Context, end <-chan struct{}) (ended bool, err error) {
	if p.reached() {
		return false, nil
	}
	select {
	case <-p.done:
		return false, nil
	case <-end:
		return !p.reached(), nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// checker is a cache.DoneChecker of the current sync point.
type checker struct {
	name    func() string
	current *atomic.Pointer[syncPoint]
}

func (c checker) Name() string { return c.name() }

func (c checker) Done() <-chan struct{} { return c.current.Load().done }

var (
	// ErrStopped is returned if the informer has stopped.
	ErrStopped = errors.New("the informer has stopped")
	// ErrStarted is returned by settings that are only possible before the first run.
	ErrStarted = errors.New("the informer has already started")
	// ErrRunning is returned by methods that are only possible between two incarnations.
	ErrRunning = errors.New("an incarnation is running")
	// ErrHandlerRemoved is returned to a caller that waits for a handler that is removed.
	ErrHandlerRemoved = errors.New("the event handler was removed")
	// ErrIncarnationOver is returned to a reflector that writes after its incarnation has ended.
	ErrIncarnationOver = errors.New("the incarnation is over")
	// ErrNilHandler is returned when a nil event handler is added.
	ErrNilHandler = errors.New("the event handler is nil")
)

// explainedError has the text of client-go's error, and wraps one of the errors above.
type explainedError struct {
	text  string
	cause error
}

func (r *explainedError) Error() string { return r.text }

func (r *explainedError) Unwrap() error { return r.cause }
