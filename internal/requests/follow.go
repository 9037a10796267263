package requests

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// Follow returns a watch of the events of w, which was opened with ctx, and records how the watch ends.
// initial states that w begins with initial events. The watch then ends with an ERROR if they pause for
// longer than InitialEventsTimeout or end early.
func (c *Continuity) Follow(ctx context.Context, w watch.Interface, initial bool) watch.Interface {
	l := &listWatch{
		continuity: c, reports: discardReporter{},
		pacer: NewPacer(false, false, NewRetrySignal()), limiter: NewLimiter(1, time.Now),
	}
	return l.followDynamic(ctx, w, initial)
}

// followDynamic is follow for a watch of a dynamic client.
func (l *listWatch) followDynamic(ctx context.Context, w watch.Interface, initial bool) watch.Interface {
	o := &openWatch{verb: VerbWatch, began: time.Now()}
	o.ctx, o.attempt = newAttempt(ctx, InitialEventsTimeout, func() {})
	o.events = &clientEvents{w, o.ctx, o.attempt}
	if initial {
		o.verb, o.initial = VerbWatchList, &initialList{release: func() {}}
		o.watchSilence(InitialEventsTimeout)
	}
	l.closeOnEnd(o)
	return l.follow(o)
}

type discardReporter struct{}

func (discardReporter) RequestStarted(Verb)         {}
func (discardReporter) RequestEnded(Verb, error)    {}
func (discardReporter) NoContact()                  {}
func (discardReporter) WatchOpened()                {}
func (discardReporter) ListCompleted(time.Duration) {}
func (discardReporter) Throttled(Verb)              {}
func (discardReporter) RecordContact(bool)          {}
