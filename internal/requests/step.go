package requests

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// requestPhase is the progress of a request at the time of an outcome.
type requestPhase int

const (
	// phaseAnswered: the server accepted or refused the request. Lists have no other phase.
	phaseAnswered requestPhase = iota
	// phaseListed: the initial events of a watch-list are complete.
	phaseListed
	// phaseStalled: the initial events paused for too long.
	phaseStalled
	// phaseFlowing: a watch received its first event.
	phaseFlowing
	// phaseBroken: an open watch ended with an error.
	phaseBroken
	// phaseClosed: an open watch ended without an error.
	phaseClosed
	// phaseHeldBack: a watch got no response headers, while the server answered lists.
	phaseHeldBack
)

type requestOutcome struct {
	verb  Verb
	phase requestPhase
	err   error // nil if it succeeded
	// retryAfter is the pause that the server asked for in a header; zero if it did not.
	retryAfter time.Duration
	// forbiddenHandled states that a forbidden type is handled otherwise, and is not a failure.
	forbiddenHandled bool
	// callerRetries states that the caller retries by itself and reports no failure.
	callerRetries bool
	// openFor is the time that a closed watch was open after its initial events; sawLiveEvent: one arrived.
	openFor      time.Duration
	sawLiveEvent bool
	now          time.Time
	// random is random in [0, 1) and spreads pauses.
	random float64
}

// provesContact reports whether the outcome proves that the server works.
func (o requestOutcome) provesContact() bool {
	switch o.phase {
	case phaseAnswered, phaseListed, phaseFlowing:
		var answer apierrors.APIStatus
		return o.err == nil ||
			errors.As(o.err, &answer) && answer.Status().Code < http.StatusInternalServerError &&
				ReasonOf(o.err) != status.ReasonThrottled
	}
	return false
}

// outcomeEffect is the effect of an outcome, in addition to the next pause.
type outcomeEffect struct {
	// reports is set if the outcome is reported, with verb and err.
	reports bool
	verb    Verb
	err     error
	// watchOpened is set when a watch is open and its initial events, if any, are complete.
	watchOpened bool
	// callForbidden is set if the requests end with a call of forbidden.
	callForbidden bool
	// throttleLimiter is set if the server wants fewer lists, and none for the duration wait. listSucceeded
	// is set after a list.
	throttleLimiter, listSucceeded bool
	wait                           time.Duration
}

// targetState summarizes the outcomes of the requests for one target.
type targetState struct {
	// The last failure: its verb and reason, the number of consecutive failures, the time of the first, the
	// current backoff with its number of pauses, and the end of the current pause.
	verb          Verb
	reason        status.Reason
	failingSince  time.Time
	failures      int
	stage         stage
	pausesAtStage int
	pauseEnd      time.Time
	// proxyBuffers is set after the end of a watch over HTTP/1 without events, which a proxy may buffer.
	proxyBuffers bool
	// tried is set after a trial, or an event, has shown that no proxy holds back watches.
	tried   bool
	silence silenceRecord
	// wakeFailures is how often this type failed again after the server had responded to another type.
	wakeFailures int

	// rounds is the number of relists without an established watch; firstRoundDone follows the first.
	rounds         int
	firstRoundDone bool
	// hasListed and hasFailed describe the current round.
	hasListed, hasFailed bool
	// listAnswered is set while the latest answer of the server was to a list, not to a watch.
	listAnswered bool
	// watchOpenSince is the time when the open watch began; zero if none is open.
	watchOpenSince time.Time

	// listIsFallback is set while the reflector lists because a watch-list failed, or the list of a polled
	// type is due, as part of the same round.
	listIsFallback bool
	// pollsUntil is the time until which no watch is requested, for the reason pollCause. unchangedLists is
	// the number of consecutive lists without a change in this time, listTime the duration of the latest.
	pollsUntil     time.Time
	pollCause      pollCause
	unchangedLists int
	listTime       time.Duration
	// listsUntil is the time until which no watch-list is requested, because one has stalled.
	listsUntil time.Time
}

// establishedAfter is the duration of a watch after which earlier failures are forgotten. It is client-go's.
const establishedAfter = 2 * time.Minute

// step returns the next state and the effect of an outcome. It is a pure function, and the only place that
// decides about kinds of outcomes.
func (p targetFacts) step(s targetState, o requestOutcome) (targetState, outcomeEffect) {
	if errors.Is(o.err, context.Canceled) {
		return s, outcomeEffect{} // the informer is being stopped
	}
	s = s.withoutOldFailures(o.now)
	switch {
	case o.phase == phaseStalled:
		s.listsUntil, s.listIsFallback = o.now.Add(watchListRetryPeriod), true
		return s, outcomeEffect{}
	case o.phase == phaseHeldBack:
		return s.polling(pollHeldBack, o.now), outcomeEffect{reports: true, verb: o.verb, err: errPollDue}
	case o.phase == phaseClosed:
		return p.watchClosed(s, o)
	case o.err == nil:
		return s.succeeded(o), outcomeEffect{
			reports: o.phase == phaseAnswered, verb: o.verb,
			watchOpened:   o.phase == phaseListed || o.phase == phaseAnswered && o.verb == VerbWatch,
			listSucceeded: o.phase == phaseListed || o.phase == phaseAnswered && !o.verb.Watches(),
		}
	}
	if o.verb.Watches() {
		s.watchOpenSince = time.Time{}
	}
	reason := ReasonOf(o.err)
	repeats := o.callerRetries || reflectorRetries(o.err) || o.verb == VerbWatchList &&
		isConnectionFailure(o.err)
	switch {
	case reason == status.ReasonForbidden && o.forbiddenHandled && o.verb != VerbWatchList:
		return s, outcomeEffect{callForbidden: true, err: o.err}
	case reason == status.ReasonVerbUnsupported && o.verb == VerbWatch && s.hasListed:
		return s.polling(pollUnsupported, o.now), outcomeEffect{reports: true, verb: o.verb, err: errPollDue}
	case reason == status.ReasonNone: // part of the protocol: the reflector lists again
		return s, outcomeEffect{reports: true, verb: o.verb, err: o.err}
	case o.verb == VerbWatchList && o.phase == phaseAnswered && !repeats:
		// The list that follows immediately shows whether the type can be read, and its outcome is reported.
		s.listIsFallback = true
		return s, outcomeEffect{}
	}
	e := outcomeEffect{reports: true, verb: o.verb, err: o.err}
	if reason == status.ReasonThrottled || reason == status.ReasonRequestFailed && o.retryAfter > 0 {
		reason = status.ReasonThrottled
		seconds, _ := apierrors.SuggestsClientDelay(o.err)
		e.throttleLimiter, e.wait = true, max(o.retryAfter, time.Duration(seconds)*time.Second)
		e.reports = o.retryAfter == 0 // otherwise it is no failure
	}
	return p.failed(s, o, reason, e.wait), e
}

// ShortWatch is the duration below which a watch counts as closed immediately. client-go uses the same value.
const ShortWatch = time.Second

// closesUntilFailure is the number of watches in a row that end at once, without an event, before that is a
// failure. A server that restarts closes one or two.
const closesUntilFailure = 3

// watchClosed handles a watch that was closed without an error, as each is in the end. If it was closed
// immediately, there is a pause. Another watch follows if it received an event, and otherwise a list.
func (p targetFacts) watchClosed(s targetState, o requestOutcome) (targetState, outcomeEffect) {
	if s.reason == status.ReasonWatchClosed && (o.sawLiveEvent || o.openFor >= ShortWatch) {
		s.failures, s.reason, s.pauseEnd = 0, status.ReasonNone, time.Time{}
	}
	if o.openFor >= ShortWatch {
		return s, outcomeEffect{}
	}
	s.watchOpenSince = time.Time{}
	s = p.failed(s, o, status.ReasonWatchClosed, 0)
	if o.sawLiveEvent || s.failures < closesUntilFailure {
		return s, outcomeEffect{}
	}
	return s, outcomeEffect{reports: true, verb: VerbWatch, err: errWatchClosed}
}

// reflectorRetries reports whether the reflector itself retries a watch or watch-list that failed with err.
func reflectorRetries(err error) bool {
	return utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)
}

// withoutOldFailures forgets failures before an established watch.
func (s targetState) withoutOldFailures(now time.Time) targetState {
	if !s.watchOpenSince.IsZero() && now.Sub(s.watchOpenSince) >= establishedAfter {
		s.rounds, s.failures, s.reason, s.pauseEnd = 0, 0, status.ReasonNone, time.Time{}
	}
	return s
}

// succeeded ends the failures that a successful request disproves. A list does not prove that watches work:
// failures of watches count until one receives an event.
func (s targetState) succeeded(o requestOutcome) targetState {
	endsFailure := o.phase == phaseFlowing || o.phase == phaseListed && s.reason != status.ReasonWatchClosed
	s.listAnswered = !o.verb.Watches()
	s.hasListed = s.hasListed || s.listAnswered || o.phase == phaseListed
	if s.listAnswered {
		endsFailure = !s.verb.Watches()
	}
	if o.verb == VerbWatch && s.pollCause != pollSilent {
		s.pollCause = pollNone
	}
	if s.watchOpenSince.IsZero() && (o.verb == VerbWatch || o.phase == phaseListed) {
		s.watchOpenSince = o.now
	}
	if endsFailure || s.failures > 0 && s.stage == stageConnection { // any response ends the outage
		s.failures, s.reason, s.pauseEnd, s.wakeFailures = 0, status.ReasonNone, time.Time{}, 0
	}
	return s
}

// failed returns the state after a failure, with the pause that the server asked for, if any.
func (p targetFacts) failed(s targetState, o requestOutcome, reason status.Reason,
	wait time.Duration) targetState {
	s.hasFailed, s.silence.compares = true, false
	if reason != s.reason || s.failures == 0 {
		s.reason, s.failures, s.failingSince, s.pausesAtStage = reason, 0, o.now, 0
	}
	s.verb = o.verb
	s.failures++
	next := p.stageOf(reason, o.now.Sub(s.failingSince))
	if isConnectionFailure(o.err) && s.wakeFailures < maxConnectionWakes {
		next = stageConnection
	}
	if next != s.stage {
		s.stage, s.pausesAtStage = next, 0
	}
	d := backoffs[next].pauseAfter(s.pausesAtStage, o.random)
	s.pausesAtStage++
	if wait > 0 {
		d = wait + time.Duration(o.random*float64(wait)/10)
	}
	if next == stageConnection && reason == status.ReasonNoAnswer {
		d = 0 // the request was long enough; the next one gets a response as soon as the server works
	}
	s.pauseEnd = o.now.Add(d)
	return s
}

// nextRound returns the state of the next round of list and watch, and when it may begin. The first may begin
// immediately, a relist no earlier than client-go's.
func (s targetState) nextRound(now time.Time, random float64) (targetState, time.Time) {
	s = s.withoutOldFailures(now)
	due := s.pauseEnd
	if s.firstRoundDone && (s.hasListed || !s.hasFailed) {
		if again := now.Add(backoffs[stageRelist].pauseAfter(s.rounds, random)); again.After(due) {
			due = again
		}
		s.rounds++
	}
	s.firstRoundDone, s.hasListed, s.hasFailed, s.watchOpenSince = true, false, false, time.Time{}
	return s, due
}
