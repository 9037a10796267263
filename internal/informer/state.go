package informer

import (
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

// String returns the name of the state.
func (s State) String() string {
	switch s {
	case StateNew:
		return "Fresh"
	case StateRunning:
		return "Running"
	case StateIdle:
		return "Idle"
	case StateStopped:
		return "Stopped"
	default:
		return "Unknown"
	}
}

// input is an event in the life cycle of an Informer.
type input int

const (
	inputRun            input = iota // an incarnation is to begin
	inputIncarnationEnd              // the running incarnation has ended
	inputForget                      // Forget was called
	inputStop                        // Stop was called
)

// nextState is the life cycle of an Informer as a pure function. It returns the next state, or the unchanged
// state and the error if the input is refused.
//
//	Fresh ──run──▶ Running ──end──▶ Idle ──run──▶ Running …
//	  └──stop──┬──────┴───stop──┬─────┘ ↺ forget
//	           ▼                ▼
//	                Stopped
func nextState(s State, in input) (State, error) {
	if s == StateStopped {
		switch in {
		case inputStop, inputIncarnationEnd:
			return StateStopped, nil
		default:
			return s, ErrStopped
		}
	}
	switch in {
	case inputRun:
		if s == StateRunning {
			return s, ErrRunning
		}
		return StateRunning, nil
	case inputIncarnationEnd:
		return StateIdle, nil
	case inputForget:
		if s == StateRunning {
			return s, ErrRunning
		}
		return s, nil
	default:
		return StateStopped, nil
	}
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

// checker is a newer.Checker of the current sync point.
type checker struct {
	name    func() string
	current *atomic.Pointer[syncPoint]
}

// Name implements newer.Checker.
func (c checker) Name() string { return c.name() }

// Done implements newer.Checker.
func (c checker) Done() <-chan struct{} { return c.current.Load().done }

var (
	// ErrStopped is returned if the informer has stopped.
	ErrStopped = errors.New("the informer has stopped")
	// ErrStarted is returned by settings that are only possible before the first run.
	ErrStarted = errors.New("the informer has already started")
	// ErrRunning is returned by methods that are only possible between two incarnations.
	ErrRunning = errors.New("an incarnation is running")
	// ErrHandlerRemoved is returned by waiting for a handler that is removed.
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
