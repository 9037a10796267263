package informer

import "errors"

var (
	// ErrStopped is reported by everything that cannot happen, or can no longer be waited for, because the
	// informer has stopped for good.
	ErrStopped = errors.New("the informer has stopped")
	// ErrStarted is reported by settings that only count before the first run.
	ErrStarted = errors.New("the informer has already started")
	// ErrRunning is reported by what needs the informer to be between two generations.
	ErrRunning = errors.New("a generation is running")
	// ErrHandlerRemoved is reported to those who wait for a handler that was removed meanwhile.
	ErrHandlerRemoved = errors.New("the event handler was removed")
	// ErrGenerationOver is reported to a reflector that writes after its generation has ended.
	ErrGenerationOver = errors.New("the generation is over")
	// ErrNilHandler is reported when a nil event handler is added.
	ErrNilHandler = errors.New("the event handler is nil")
)

// refusal is an error whose text is the one client-go's callers know, and whose cause is one of the
// sentinels.
type refusal struct {
	text  string
	cause error
}

func (r *refusal) Error() string { return r.text }

func (r *refusal) Unwrap() error { return r.cause }
