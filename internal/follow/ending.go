package follow

import (
	"context"
	"sync"

	"github.com/crdcache/crdcache/internal/requests"
)

// transition is what ends a generation: a type that is gone, or another version that takes over.
type transition struct {
	gone    requests.Reason
	version string // empty when the type is gone
	known   *knowledge
}

// ending waits for what ends the generation that follows a version of a type as it was, without a goroutine:
// whoever changes what is known of the type calls it.
type ending struct {
	*Follower
	version string
	cancel  context.CancelFunc // ends the generation

	mu    sync.Mutex // one look at a time
	was   identity
	over  bool
	found transition // once it is over
}

// news is called when what is known of the type has changed.
func (e *ending) news() {
	if !e.look() {
		// Whatever has changed, it may be what the requests wait for.
		e.Requests.Retry()
	}
}

// look compares what is known now with what runs, and reports whether the generation is over.
func (e *ending) look() bool {
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

// next returns what has ended the generation; nothing when the informer ends.
func (e *ending) next() transition {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true // a look that comes late finds nothing to do
	return e.found
}

// compare returns what ends the generation, if it is to end.
func (e *ending) compare(known *knowledge) (transition, bool) {
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
		e.was.uid = known.UID // it has become known, and is that of the same type
	}
	return transition{}, false
}
