package follow

import (
	"context"
	"sync"
)

// incarnationWatcher ends the incarnation of a version of a type when the type changes. It needs no
// goroutine, because the source of the change calls it.
type incarnationWatcher struct {
	*Follower
	version string
	polls   bool               // the incarnation lists and does not watch
	cancel  context.CancelFunc // ends the incarnation

	mu       sync.Mutex // serializes check
	identity identity
	ended    bool
}

// onTypeChange is called after a change of the type.
func (e *incarnationWatcher) onTypeChange() {
	if !e.check() {
		// Requests may be in a pause after a failure that the change resolved.
		e.Requests.Retry()
	}
}

// check ends the incarnation if its version of the type is no longer served, and reports whether it is over.
func (e *incarnationWatcher) check() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return true
	}
	state := e.observeType()
	if e.ended = !state.isServed(e.identity, e.version, e.polls); e.ended {
		e.cancel()
	} else if e.identity.uid == "" {
		e.identity.uid = state.UID // the UID of the same type became known
	}
	return e.ended
}

// finish makes later checks do nothing. It returns the identity of the type whose objects the cache has.
func (e *incarnationWatcher) finish() identity {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	return e.identity
}
