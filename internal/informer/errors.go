package informer

import "errors"

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

// refusal has the text of client-go's error, and wraps one of the errors above.
type refusal struct {
	text  string
	cause error
}

func (r *refusal) Error() string { return r.text }

func (r *refusal) Unwrap() error { return r.cause }
