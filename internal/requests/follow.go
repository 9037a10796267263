package requests

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// Follow returns a watch of the events of w, which was opened with ctx, and takes note of how it ends. If w
// begins with initial events, it ends with an ERROR when they pause for longer than Patience or end early.
func (c *Continuity) Follow(ctx context.Context, w watch.Interface, initial bool) watch.Interface {
	l := &listWatch{
		continuity: c, reports: unheard{},
		pacer: NewPacer(false, false, NewRetrySignal()), limiter: NewLimiter(1, time.Now),
	}
	return l.followed(ctx, w, initial)
}

// followed is follow for a watch of a dynamic client.
func (l *listWatch) followed(ctx context.Context, w watch.Interface, initial bool) watch.Interface {
	o := &openWatch{verb: VerbWatch, began: time.Now()}
	o.ctx, o.attempt = newAttempt(ctx, Patience, func() {})
	o.events = &clientEvents{w, o.ctx, o.attempt}
	if initial {
		o.verb, o.initial = VerbWatchList, &initialList{release: func() {}}
		o.watch(Patience)
	}
	l.begin(o)
	return l.follow(o)
}

// unheard is a Reporter that nobody hears.
type unheard struct{}

// RequestStarted implements Reporter.
func (unheard) RequestStarted(Verb) {}

// Answer implements Reporter.
func (unheard) Answer(Verb, error) {}

// NoContact implements Reporter.
func (unheard) NoContact() {}

// WatchOpened implements Reporter.
func (unheard) WatchOpened() {}

// Listed implements Reporter.
func (unheard) Listed(time.Duration) {}

// Throttled implements Reporter.
func (unheard) Throttled(Verb) {}

// Contact implements Reporter.
func (unheard) Contact(bool) {}
