package informer

import (
	"errors"

	"github.com/crdcache/crdcache/internal/informer/delivery"
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

var (
	// ErrStopped is returned if the informer has stopped.
	ErrStopped = delivery.ErrStopped
	// ErrStarted is returned by settings that are only possible before the first run.
	ErrStarted = errors.New("the informer has already started")
	// ErrRunning is returned by methods that are only possible between two incarnations.
	ErrRunning = errors.New("an incarnation is running")
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
