package requests

import (
	"context"
	"io"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// errLost is the error of a request after the server closed the connection.
var errLost error = &url.Error{Op: "Get", URL: "http://example.com", Err: io.EOF}

// TestStep covers every kind of outcome as the first one.
func TestStep(t *testing.T) {
	now := time.Unix(1000, 0)
	const (
		first = 800 * time.Millisecond
		soon  = 500 * time.Millisecond
	)
	failure := serverError(500)
	paused := func(verb Verb, reason status.Reason, pause time.Duration) targetState {
		s := targetState{verb: verb, reason: reason, failingSince: now, failures: 1, pausesAtStage: 1,
			pauseEnd:  now.Add(pause),
			hasFailed: true}
		switch reason {
		case status.ReasonConversionFailed:
			s.stage = stageConversion
		case status.ReasonUnreachable:
			if pause == soon {
				s.stage = stageConnection
			}
		case status.ReasonNoAnswer:
			s.stage, s.unansweredRequests = stageConnection, 1
		}
		return s
	}
	reported := func(verb Verb, err error) outcomeEffect {
		return outcomeEffect{reports: true,
			verb: verb, err: err}
	}
	throttled := func(verb Verb, err error, wait time.Duration) outcomeEffect {
		return outcomeEffect{reports: wait == 0, verb: verb, err: err,
			throttleLimiter: true, wait: wait}
	}
	tests := map[string]struct {
		outcome requestOutcome
		state   targetState
		effect  outcomeEffect
	}{
		"a list": {requestOutcome{verb: VerbList}, targetState{hasListed: true},
			outcomeEffect{reports: true, verb: VerbList, listSucceeded: true}},
		"a further page": {requestOutcome{verb: VerbListMore}, targetState{hasListed: true},
			outcomeEffect{reports: true, verb: VerbListMore, listSucceeded: true}},
		"a watch": {requestOutcome{verb: VerbWatch}, targetState{watchOpenSince: now},
			outcomeEffect{reports: true, verb: VerbWatch, watchOpened: true}},
		"its first event": {requestOutcome{verb: VerbWatch, phase: phaseFlowing}, targetState{watchOpenSince: now},
			outcomeEffect{verb: VerbWatch}},
		"a watch-list": {requestOutcome{verb: VerbWatchList}, targetState{}, reported(VerbWatchList, nil)},
		"its initial events": {requestOutcome{verb: VerbWatchList, phase: phaseListed},
			targetState{hasListed: true, watchOpenSince: now}, outcomeEffect{verb: VerbWatchList,
				watchOpened:   true,
				listSucceeded: true}},
		"its end": {requestOutcome{verb: VerbWatch, phase: phaseClosed, openFor: time.Second},
			targetState{}, outcomeEffect{}},
		"closed at once": {requestOutcome{verb: VerbWatch, phase: phaseClosed},
			paused(VerbWatch, status.ReasonWatchClosed,
				first), outcomeEffect{}},
		"after an event": {requestOutcome{verb: VerbWatch, phase: phaseClosed, sawLiveEvent: true},
			paused(VerbWatch, status.ReasonWatchClosed, first), outcomeEffect{}},
		"they stall": {requestOutcome{verb: VerbWatchList, phase: phaseStalled},
			targetState{watchListStalled: true, listIsFallback: true}, outcomeEffect{}},
		"a list fails": {requestOutcome{verb: VerbList, err: failure},
			paused(VerbList, status.ReasonRequestFailed,
				first), reported(VerbList, failure)},
		"a watch is refused": {requestOutcome{verb: VerbWatch, err: failure},
			paused(VerbWatch, status.ReasonRequestFailed, first), reported(VerbWatch, failure)},
		"a watch breaks": {requestOutcome{verb: VerbWatch, phase: phaseBroken, err: failure},
			paused(VerbWatch, status.ReasonRequestFailed, first), reported(VerbWatch, failure)},
		"no watch-lists": {requestOutcome{verb: VerbWatchList, err: serverError(422)},
			targetState{listIsFallback: true}, outcomeEffect{}},
		"no connection": {requestOutcome{verb: VerbList, err: errRefused},
			paused(VerbList, status.ReasonUnreachable,
				soon), reported(VerbList, errRefused)},
		"none, for a watch": {requestOutcome{verb: VerbWatch, err: errRefused},
			paused(VerbWatch, status.ReasonUnreachable, soon), reported(VerbWatch, errRefused)},
		"none, for both": {requestOutcome{verb: VerbWatchList, err: errRefused},
			paused(VerbWatchList, status.ReasonUnreachable, soon), reported(VerbWatchList, errRefused)},
		"connection lost": {requestOutcome{verb: VerbList, err: errLost},
			paused(VerbList, status.ReasonUnreachable,
				soon), reported(VerbList, errLost)},
		"lost, for both": {requestOutcome{verb: VerbWatchList, err: errLost},
			paused(VerbWatchList, status.ReasonUnreachable, soon), reported(VerbWatchList, errLost)},
		"lost in the answer": {requestOutcome{verb: VerbList, err: io.ErrUnexpectedEOF},
			paused(VerbList, status.ReasonUnreachable, first), reported(VerbList, io.ErrUnexpectedEOF)},
		"no answer": {requestOutcome{verb: VerbList, err: errNoAnswer},
			paused(VerbList, status.ReasonNoAnswer, 0), reported(VerbList, errNoAnswer)},
		"503 for a time": {requestOutcome{verb: VerbList, err: serverError(503), retryAfter: time.Minute},
			paused(VerbList, status.ReasonThrottled, time.Minute), throttled(VerbList,
				serverError(503), time.Minute)},
		"expired": {requestOutcome{verb: VerbWatch, err: serverError(410)}, targetState{},
			reported(VerbWatch, serverError(410))},
		"expired, later": {requestOutcome{verb: VerbWatch, phase: phaseBroken, err: serverError(410)}, targetState{},
			reported(VerbWatch, serverError(410))},
		"expired, for both": {requestOutcome{verb: VerbWatchList, err: serverError(410)}, targetState{},
			reported(VerbWatchList, serverError(410))},
		"stopped": {requestOutcome{verb: VerbList, err: context.Canceled}, targetState{}, outcomeEffect{}},
		"forbidden": {requestOutcome{verb: VerbList, err: serverError(403)},
			paused(VerbList, status.ReasonForbidden, first), reported(VerbList, serverError(403))},
		"forbidden, handled": {requestOutcome{verb: VerbList, err: serverError(403), forbiddenHandled: true}, targetState{},
			outcomeEffect{callForbidden: true, err: serverError(403)}},
		"... after a list": {requestOutcome{verb: VerbWatch, err: serverError(403), forbiddenHandled: true}, targetState{},
			outcomeEffect{callForbidden: true, err: serverError(403)}},
		"... as the list says": {requestOutcome{verb: VerbWatchList, err: serverError(403), forbiddenHandled: true},
			targetState{listIsFallback: true}, outcomeEffect{}},
		"throttled": {requestOutcome{verb: VerbList, err: serverError(429)},
			paused(VerbList, status.ReasonThrottled, first), throttled(VerbList, serverError(429), 0)},
		"throttled, a watch": {requestOutcome{verb: VerbWatch, err: serverError(429)},
			paused(VerbWatch, status.ReasonThrottled, first), throttled(VerbWatch, serverError(429), 0)},
		"for a time": {requestOutcome{verb: VerbList, err: serverError(429), retryAfter: time.Minute},
			paused(VerbList, status.ReasonThrottled, time.Minute), throttled(VerbList,
				serverError(429), time.Minute)},
		"for both": {requestOutcome{verb: VerbWatchList, err: serverError(429), retryAfter: time.Minute},
			paused(VerbWatchList, status.ReasonThrottled, time.Minute), throttled(VerbWatchList,
				serverError(429), time.Minute)},
		"conversion": {requestOutcome{verb: VerbList, err: conversionError(500)},
			paused(VerbList, status.ReasonConversionFailed, time.Second),
			reported(VerbList, conversionError(500))},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.outcome.now = now
			next, e := targetPolicy{}.step(targetState{}, tt.outcome)
			if diff := cmp.Diff(tt.state, next, cmp.AllowUnexported(targetState{})); diff != "" {
				t.Errorf("the state (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.effect, e, cmp.AllowUnexported(outcomeEffect{}),
				cmp.Comparer(sameText)); diff != "" {
				t.Errorf("the effect (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWatchesClosedAtOnce: only several consecutive ones without an event are reported. A watch-list that
// completes its initial events counts as a watch.
func TestWatchesClosedAtOnce(t *testing.T) {
	for _, verb := range []Verb{VerbWatch, VerbWatchList} {
		now := time.Unix(1000, 0)
		s := targetState{}
		closes := func(lasted time.Duration, brought bool) bool {
			o := requestOutcome{verb: verb, now: now}
			s, _ = targetPolicy{}.step(s, o)
			if verb == VerbWatchList {
				o.phase = phaseListed
				s, _ = targetPolicy{}.step(s, o)
			}
			now = now.Add(lasted)
			next, e := targetPolicy{}.step(s, requestOutcome{verb: verb, phase: phaseClosed, now: now,
				openFor:      lasted,
				sawLiveEvent: brought})
			least := now.Add(backoffs[stageOrdinary].first)
			if lasted < ShortWatch && next.pauseEnd.Before(least) {
				t.Errorf("%s: after %v the next one may begin %v later", verb, lasted, next.pauseEnd.Sub(now))
			}
			s = next
			return e.reports && e.verb == VerbWatch && ReasonOf(e.err) == status.ReasonWatchClosed
		}
		var reported []bool
		for _, lasted := range []time.Duration{0, ShortWatch - 1, 0, 0, ShortWatch, 0, 0, 0} {
			reported = append(reported, closes(lasted, false))
		}
		reported = append(reported, closes(0, true), closes(0, false), closes(0, false), closes(0, false))
		if want := []bool{false, false, true, true, false, false, false, true, false, false, true,
			true}; !slices.Equal(reported, want) {
			t.Errorf("%s: reported %v, want %v", verb, reported, want)
		}
	}
}

// sameText compares errors by their texts.
func sameText(a, b error) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error() &&
		apierrors.ReasonForError(a) == apierrors.ReasonForError(b))
}

// TestOnlyWatchesProveWatches: a list that succeeds does not reset failures of watches.
func TestOnlyWatchesProveWatches(t *testing.T) {
	now := time.Unix(1000, 0)
	s := targetState{}
	record := func(o requestOutcome) {
		o.now = now
		s, _ = targetPolicy{}.step(s, o)
	}
	for range 3 {
		record(requestOutcome{verb: VerbList})
		record(requestOutcome{verb: VerbWatch, err: serverError(500)})
	}
	if s.failures != 3 {
		t.Errorf("%d failures count", s.failures)
	}
	record(requestOutcome{verb: VerbWatch})
	if s.failures != 3 {
		t.Errorf("a watch that has brought nothing yet leaves %d failures", s.failures)
	}
	s.rounds = 5
	now = now.Add(establishedAfter)
	record(requestOutcome{verb: VerbWatch, phase: phaseBroken, err: serverError(500)})
	if s.failures != 1 || s.rounds != 0 {
		t.Errorf("after an established watch, %d failures and %d rounds count", s.failures, s.rounds)
	}
	record(requestOutcome{verb: VerbWatch, phase: phaseFlowing})
	if s.failures != 0 || !s.pauseEnd.IsZero() {
		t.Errorf("after an event, %d failures count, until %v", s.failures, s.pauseEnd)
	}
}
