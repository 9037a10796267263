package requests

import (
	"sync"
	"time"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// backoff computes the pauses between attempts. The pauses double from first to longest. jitter is the random
// fraction of a pause, so that types and programs do not retry at the same time.
type backoff struct {
	first, longest time.Duration
	jitter         float64
}

// pauseAfter returns the pause after a number of earlier pauses. random is in [0, 1).
func (p backoff) pauseAfter(earlier int, random float64) time.Duration {
	d := p.longest
	if earlier < 16 {
		d = min(p.first<<earlier, p.longest)
	}
	// Leave room for the random part below longest.
	d = min(d, time.Duration(float64(p.longest)/(1+p.jitter)))
	return d + time.Duration(float64(d)*p.jitter*random)
}

const (
	// lagGracePeriod is the time during which the lag of one API server explains a 404 for a served type.
	lagGracePeriod = 30 * time.Second
	// rbacGracePeriod is the time during which a forbidden type is retried at the ordinary pace, because
	// roles are often created together with their users.
	rbacGracePeriod = 2 * time.Minute
	// maxConnectionWakes limits the retries that responses to other types cause, before a type's own backoff.
	maxConnectionWakes = 3
)

// targetFacts has the facts about a target, other than results of requests, that determine its backoff.
type targetFacts struct {
	// typeKnown states that a source of types reports the type as served. A 404 is then explained by a
	// lagging API server.
	typeKnown bool
	// listOnly states that a source of types reports that the type cannot be watched.
	listOnly bool
	// newNamespace states that the requests are for a new namespace, in which permissions may follow soon.
	newNamespace bool
}

// stage selects the backoff after a failure.
type stage int

const (
	// stageOrdinary has the backoff of client-go's reflector, which grows to 30 seconds.
	stageOrdinary stage = iota
	// stageLagging is for a lagging API server, which catches up soon.
	stageLagging
	// stageAbsent is for a type that a source of types reports as served, but that the server does not have.
	stageAbsent
	// stageForbidden is for a permission that a person has to grant.
	stageForbidden
	// stageConversion is for a failing conversion webhook, which more requests would only load.
	stageConversion
	// stageConnection is for failures that affect all types of a factory, which take turns. It is short,
	// because requests do not load a server that cannot be reached.
	stageConnection
	// stageRelist is for repeated successful lists, which load the server most.
	stageRelist
	// stagePoll is for the lists of a type that is polled, while they change nothing.
	stagePoll
)

var backoffs = [...]backoff{
	stageOrdinary:   {800 * time.Millisecond, 30 * time.Second, 1},
	stageLagging:    {250 * time.Millisecond, 5 * time.Second, 0.25},
	stageAbsent:     {5 * time.Second, time.Minute, 1},
	stageForbidden:  {time.Minute, 5 * time.Minute, 0.25},
	stageConversion: {time.Second, time.Minute, 1},
	stageConnection: {500 * time.Millisecond, time.Second, 1},
	stageRelist:     {800 * time.Millisecond, time.Minute, 1},
	stagePoll:       {3 * time.Second, 25 * time.Second, 0.25},
}

// stageOf returns the stage for a reason that has lasted for some time.
func (p targetFacts) stageOf(reason status.Reason, failing time.Duration) stage {
	switch {
	case reason == status.ReasonNotFound && p.typeKnown && failing < lagGracePeriod,
		reason == status.ReasonForbidden && p.newNamespace && failing < lagGracePeriod:
		return stageLagging
	case reason == status.ReasonNotFound && p.typeKnown:
		return stageAbsent
	case reason == status.ReasonForbidden && failing >= rbacGracePeriod:
		return stageForbidden
	case reason == status.ReasonConversionFailed:
		return stageConversion
	}
	return stageOrdinary
}

// sharedOutage spreads the requests to a server that does not respond. The types take turns. When one request
// gets a response, all types continue immediately. The zero value is ready for concurrent use.
type sharedOutage struct {
	mu    sync.Mutex
	next  time.Time     // time of the next turn
	ended chan struct{} // closed when a request gets a response; nil if no type waits
}

// nextAttempt returns the time at which a request that is due can be sent. The channel is closed if the
// server responds to another request first.
func (o *sharedOutage) nextAttempt(due time.Time) (at time.Time, ended <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended == nil {
		o.ended, o.next = make(chan struct{}), time.Time{}
	}
	if o.next.Before(due) {
		o.next = due
	}
	at = o.next
	o.next = at.Add(backoffs[stageConnection].first)
	return at, o.ended
}

func (o *sharedOutage) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended != nil {
		close(o.ended)
		o.ended = nil
	}
}
