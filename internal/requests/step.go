package requests

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// phase is how far a request had come when something became of it.
type phase int

const (
	// answered: the server accepted or refused the request. Of a list, that is all there is.
	answered phase = iota
	// listed: the initial events of a watch-list are over.
	listed
	// stalled: they paused for too long.
	stalled
	// flowing: a watch has brought its first event.
	flowing
	// broken: a watch that was open ended with an error.
	broken
	// closed: a watch that was open ended without an error.
	closed
)

// outcome is what became of a request.
type outcome struct {
	verb  Verb
	phase phase
	err   error // nil: all is well
	// slow says that the response headers came late: the next request has to wait for as long.
	slow bool
	// asked is how long the server wants to be left alone, as the header of its answer says; zero where it
	// does not.
	asked time.Duration
	// handsOver says that who follows the type goes on in another way where it is forbidden: that is no
	// failure.
	handsOver bool
	// again says that who asked does so again by itself, so that nobody else hears of the failure.
	again bool
	// lasted is how long a watch that is closed was open, its initial events not counted; brought says that
	// something came in that time.
	lasted  time.Duration
	brought bool
	now     time.Time
	// chance is random in [0, 1): pauses are spread by it.
	chance float64
}

// reaches reports whether the outcome shows that the server works.
func (o outcome) reaches() bool {
	switch o.phase {
	case answered, listed, flowing:
		var answer apierrors.APIStatus
		return o.err == nil ||
			errors.As(o.err, &answer) && answer.Status().Code < http.StatusInternalServerError &&
				ReasonOf(o.err) != ReasonThrottled
	}
	return false
}

// effect is what an outcome leads to, beside the next pause.
type effect struct {
	// reports says that the outcome is reported, as that of verb and err.
	reports bool
	verb    Verb
	err     error
	// opens says that a watch is open whose initial events, if it has any, are over.
	opens bool
	// handsOver says that the requests end here.
	handsOver bool
	// throttles says that the server wants fewer lists, and nothing for as long as wait; eases that a list
	// has succeeded.
	throttles, eases bool
	wait             time.Duration
}

// state is what the outcomes of the requests for one target come to.
type state struct {
	// What failed last: verb and reason, how often in a row, since when, how many of the pauses at hand there
	// have been, and when the last one is over.
	verb     Verb
	reason   Reason
	since    time.Time
	failures int
	stage    stage
	pauses   int
	due      time.Time
	// unanswered counts the requests in a row for which no response headers came.
	unanswered int
	// buffered says that a watch over HTTP/1 was silent from its beginning, and was ended: a proxy may hold
	// the events back.
	buffered bool
	// woken counts how often the server had answered another type, and this one failed again.
	woken int

	// rounds counts the rounds of list and watch that were begun to list again, without an established watch
	// between; begun says that there has been a first one.
	rounds int
	begun  bool
	// hasListed and hasFailed say what became of the round so far.
	hasListed, hasFailed bool
	// watching is since when a watch has been open; zero while none is.
	watching time.Time

	// fallback says that the reflector is about to list because a watch-list failed: that is part of the same
	// round.
	fallback bool
	// lists says that a watch-list has stalled: there won't be another.
	lists bool
}

// established is how long a watch must last for what was before not to count any more. client-go forgets
// after as long.
const established = 2 * time.Minute

// step returns what an outcome leads to. It is pure: what becomes of each kind of outcome is decided here
// alone.
func (p policy) step(s state, o outcome) (state, effect) {
	if errors.Is(o.err, context.Canceled) {
		return s, effect{} // ours: the informer is being stopped
	}
	s = s.settled(o.now)
	switch {
	case o.phase == stalled:
		s.lists, s.fallback = true, true
		return s, effect{}
	case o.phase == closed:
		return p.closed(s, o)
	case o.err == nil:
		return s.succeeded(o), effect{
			reports: o.phase == answered, verb: o.verb,
			opens: o.phase == listed || o.phase == answered && o.verb == VerbWatch,
			eases: o.phase == listed || o.phase == answered && !o.verb.Watches(),
		}
	}
	if o.verb.Watches() {
		s.watching = time.Time{}
	}
	reason := ReasonOf(o.err)
	repeats := o.again || repeated(o.err) || o.verb == VerbWatchList && connectionFailed(o.err)
	if errors.Is(o.err, errNoAnswer) {
		s.unanswered++
	} else if !o.slow {
		s.unanswered = 0
	}
	switch {
	case reason == ReasonForbidden && o.handsOver && o.verb != VerbWatchList:
		return s, effect{handsOver: true, err: o.err}
	case reason == ReasonNone: // part of the protocol: the reflector lists again
		return s, effect{reports: true, verb: o.verb, err: o.err}
	case o.verb == VerbWatchList && o.phase == answered && !repeats:
		// A list follows at once, whose outcome counts: it tells whether the type can be read, and what the
		// server has to say.
		s.fallback = true
		return s, effect{}
	}
	e := effect{reports: true, verb: o.verb, err: o.err}
	if reason == ReasonThrottled || reason == ReasonRequestFailed && o.asked > 0 {
		reason = ReasonThrottled
		seconds, _ := apierrors.SuggestsClientDelay(o.err)
		e.throttles, e.wait = true, max(o.asked, time.Duration(seconds)*time.Second)
		e.reports = o.asked == 0 // that the server asks for time is known already, and no failure
	}
	return p.failed(s, o, reason, e.wait), e
}

// ShortWatch is how long a watch lasts at least that is not taken to be closed at once. client-go's is as
// long.
const ShortWatch = time.Second

// closesUntilFailure is how many watches in a row are closed at once, and bring nothing, before that is a
// failure: a server that is restarted closes one or two.
const closesUntilFailure = 3

// closed returns what follows from a watch that was closed without an error, as each is in the end. After one
// that was closed at once there is a pause: the reflector goes on with another at once if it has brought
// something, and lists again if not.
func (p policy) closed(s state, o outcome) (state, effect) {
	if s.reason == ReasonWatchClosed && (o.brought || o.lasted >= ShortWatch) {
		s.failures, s.reason, s.due = 0, ReasonNone, time.Time{}
	}
	if o.lasted >= ShortWatch {
		return s, effect{}
	}
	s.watching = time.Time{}
	s = p.failed(s, o, ReasonWatchClosed, 0)
	if o.brought || s.failures < closesUntilFailure {
		return s, effect{}
	}
	return s, effect{reports: true, verb: VerbWatch, err: errWatchClosed}
}

// repeated reports whether the reflector tries a watch or watch-list that failed with err again by itself.
func repeated(err error) bool {
	return utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)
}

// settled forgets what was before a watch that has lasted.
func (s state) settled(now time.Time) state {
	if !s.watching.IsZero() && now.Sub(s.watching) >= established {
		s.rounds, s.failures, s.reason, s.due = 0, 0, ReasonNone, time.Time{}
	}
	return s
}

// succeeded returns the state after something went well. That lists succeed says nothing of watches: what was
// wrong with those counts until one brings something.
func (s state) succeeded(o outcome) state {
	over := o.phase == flowing || o.phase == listed && s.reason != ReasonWatchClosed
	if !o.slow {
		s.unanswered = 0
	}
	if s.failures > 0 && s.stage == connection { // any answer ends that
		s.failures, s.reason, s.due, s.woken = 0, ReasonNone, time.Time{}, 0
	}
	switch {
	case !o.verb.Watches():
		s.hasListed = true
		over = !s.verb.Watches()
	case o.phase == listed:
		s.hasListed = true
	}
	if s.watching.IsZero() && (o.verb == VerbWatch || o.phase == listed) {
		s.watching = o.now
	}
	if over {
		s.failures, s.reason, s.due, s.woken = 0, ReasonNone, time.Time{}, 0
	}
	return s
}

// failed returns the state after a failure, after which there is a pause: the one that the server wants, if
// it says so.
func (p policy) failed(s state, o outcome, reason Reason, wait time.Duration) state {
	s.hasFailed = true
	if reason != s.reason || s.failures == 0 {
		s.reason, s.failures, s.since, s.pauses = reason, 0, o.now, 0
	}
	s.verb = o.verb
	s.failures++
	next, pauses := p.pauses(reason, o.now.Sub(s.since))
	if connectionFailed(o.err) && s.woken < connectionWakes {
		next, pauses = connection, connectionPause
	}
	if next != s.stage {
		s.stage, s.pauses = next, 0
	}
	d := pauses.after(s.pauses, o.chance)
	s.pauses++
	if wait > 0 {
		d = wait + time.Duration(o.chance*float64(wait)/10)
	}
	if next == connection && reason == ReasonNoAnswer {
		d = 0 // the request has taken long; one that is under way when the server goes on is answered at once
	}
	s.due = o.now.Add(d)
	return s
}

// begin returns the state of the next round of list and watch, and when that may begin: the first at once,
// and what is listed again, for whatever reason, no sooner than client-go would.
func (s state) begin(now time.Time, chance float64) (state, time.Time) {
	s = s.settled(now)
	due := s.due
	if s.begun && (s.hasListed || !s.hasFailed) {
		if again := now.Add(relistPause.after(s.rounds, chance)); again.After(due) {
			due = again
		}
		s.rounds++
	}
	s.begun, s.hasListed, s.hasFailed, s.watching = true, false, false, time.Time{}
	return s, due
}
