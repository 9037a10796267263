package follow

import (
	"context"
	"sync"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// incarnationEnd describes why an incarnation ends: the type is gone, or another version must be followed.
type incarnationEnd struct {
	reason  status.Reason
	version string // empty if the type is gone
	state   *typeState
}

// incarnationWatcher ends the incarnation of a version of a type when the type changes. It needs no
// goroutine, because the source of the change calls it.
type incarnationWatcher struct {
	*Follower
	version string
	polls   bool               // the incarnation lists and does not watch
	cancel  context.CancelFunc // ends the incarnation

	mu         sync.Mutex // serializes check
	identity   identity
	ended      bool
	transition incarnationEnd // valid if ended is set
}

// onTypeChange is called after a change of the type.
func (e *incarnationWatcher) onTypeChange() {
	if !e.check() {
		// Requests may be in a pause after a failure that the change resolved.
		e.Requests.Retry()
	}
}

// check compares the type with the running incarnation, and reports whether the incarnation is over.
func (e *incarnationWatcher) check() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return true
	}
	state := e.observeType()
	if e.transition, e.ended = e.compare(state); e.ended {
		e.cancel()
	}
	return e.ended
}

// finish returns why the incarnation has ended. It returns the zero value if the informer is stopped.
func (e *incarnationWatcher) finish() incarnationEnd {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true // later checks do nothing
	return e.transition
}

// compare returns the transition that ends the incarnation, if any.
func (e *incarnationWatcher) compare(state *typeState) (incarnationEnd, bool) {
	if reason := state.endReason(e.identity); reason != status.ReasonNone {
		return incarnationEnd{reason: reason}, true
	}
	if !state.serves(e.version) || state.polls(e.version) != e.polls {
		next, reason := e.Versions.choose(e.Type.Version, state.Type)
		if reason != status.ReasonNone {
			return incarnationEnd{reason: status.ReasonVersionNotServed}, true
		}
		return incarnationEnd{version: next, state: state}, true
	}
	if e.identity.uid == "" {
		e.identity.uid = state.UID // the UID of the same type became known
	}
	return incarnationEnd{}, false
}
