package follow

import (
	"context"
	"sync"

	"github.com/crdcache/crdcache/internal/requests"
)

// transition is why a generation ends: the type is gone, or another version takes over.
type transition struct {
	gone    requests.Reason
	version string // empty if the type is gone
	known   *typeState
}

// ending ends the generation of a version of a type when the type changes. It needs no goroutine, because the
// source of the change calls it.
type ending struct {
	*Follower
	version string
	cancel  context.CancelFunc // ends the generation

	mu    sync.Mutex // serializes check
	was   identity
	over  bool
	found transition // valid if over is set
}

// changed is called after a change of the type.
func (e *ending) changed() {
	if !e.check() {
		// The change may end the wait of the requests.
		e.Requests.Retry()
	}
}

// check compares the type with the running generation, and reports whether the generation is over.
func (e *ending) check() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over {
		return true
	}
	known, _ := e.observe()
	if e.found, e.over = e.compare(known); e.over {
		e.cancel()
	}
	return e.over
}

// finish returns why the generation has ended. The result is empty if the informer ends.
func (e *ending) finish() transition {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true // later checks do nothing
	return e.found
}

// compare returns the transition that ends the generation, if any.
func (e *ending) compare(known *typeState) (transition, bool) {
	if reason := known.ended(e.was); reason != requests.ReasonNone {
		return transition{gone: reason}, true
	}
	if !known.serves(e.version) {
		next, reason := e.Versions.choose(e.Type.Version, known.Type)
		if reason != requests.ReasonNone {
			return transition{gone: requests.ReasonVersionNotServed}, true
		}
		return transition{version: next, known: known}, true
	}
	if e.was.uid == "" {
		e.was.uid = known.UID // the UID of the same type became known
	}
	return transition{}, false
}
