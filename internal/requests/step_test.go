package requests

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// errLost is the error of a request after the server closed the connection.
var errLost error = &url.Error{Op: "Get", URL: "http://example.com", Err: io.EOF}

// TestStep checks the next state for each kind of outcome.
func TestStep(t *testing.T) {
	start := time.Unix(1000, 0)
	const (
		first = 800 * time.Millisecond
		soon  = 500 * time.Millisecond
	)
	failure := serverError(500)
	paused := func(verb Verb, reason status.Reason, pause time.Duration) targetState {
		s := targetState{verb: verb, reason: reason, failingSince: start, failures: 1, pausesAtStage: 1,
			pauseEnd:  start.Add(pause),
			hasFailed: true}
		switch reason {
		case status.ReasonConversionFailed:
			s.stage = stageConversion
		case status.ReasonUnreachable:
			if pause == soon {
				s.stage = stageConnection
			}
		case status.ReasonNoAnswer:
			s.stage = stageConnection
		}
		return s
	}
	reported := func(verb Verb, err error) outcomeEffect {
		return outcomeEffect{reports: true, verb: verb, err: err}
	}
	throttled := func(verb Verb, err error, wait time.Duration) outcomeEffect {
		return outcomeEffect{reports: wait == 0, verb: verb, err: err, throttleLimiter: true, wait: wait}
	}
	tests := map[string]struct {
		outcome requestOutcome
		state   targetState
		effect  outcomeEffect
	}{
		"a list": {requestOutcome{verb: VerbList}, targetState{hasListed: true, listAnswered: true},
			outcomeEffect{reports: true, verb: VerbList, listSucceeded: true}},
		"a further page": {requestOutcome{verb: VerbListMore}, targetState{hasListed: true, listAnswered: true},
			outcomeEffect{reports: true, verb: VerbListMore, listSucceeded: true}},
		"a watch": {requestOutcome{verb: VerbWatch}, targetState{watchOpenSince: start},
			outcomeEffect{reports: true, verb: VerbWatch, watchOpened: true}},
		"the first event of a watch": {requestOutcome{verb: VerbWatch, phase: phaseFlowing}, targetState{watchOpenSince: start},
			outcomeEffect{verb: VerbWatch}},
		"a watch-list": {requestOutcome{verb: VerbWatchList}, targetState{}, reported(VerbWatchList, nil)},
		"the initial events of a watch-list": {requestOutcome{verb: VerbWatchList, phase: phaseListed},
			targetState{hasListed: true, watchOpenSince: start}, outcomeEffect{verb: VerbWatchList,
				watchOpened:   true,
				listSucceeded: true}},
		"the end of a watch": {requestOutcome{verb: VerbWatch, phase: phaseClosed, openFor: time.Second},
			targetState{}, outcomeEffect{}},
		"a watch closed immediately": {requestOutcome{verb: VerbWatch, phase: phaseClosed},
			paused(VerbWatch, status.ReasonWatchClosed,
				first), outcomeEffect{}},
		"a watch closed after an event": {requestOutcome{verb: VerbWatch, phase: phaseClosed, sawLiveEvent: true},
			paused(VerbWatch, status.ReasonWatchClosed, first), outcomeEffect{}},
		"stalled initial events": {requestOutcome{verb: VerbWatchList, phase: phaseStalled},
			targetState{listsUntil: start.Add(watchListRetryPeriod), listIsFallback: true}, outcomeEffect{}},
		"a list fails": {requestOutcome{verb: VerbList, err: failure},
			paused(VerbList, status.ReasonRequestFailed,
				first), reported(VerbList, failure)},
		"a watch is refused": {requestOutcome{verb: VerbWatch, err: failure},
			paused(VerbWatch, status.ReasonRequestFailed, first), reported(VerbWatch, failure)},
		"a watch breaks": {requestOutcome{verb: VerbWatch, phase: phaseBroken, err: failure},
			paused(VerbWatch, status.ReasonRequestFailed, first), reported(VerbWatch, failure)},
		"watch-lists not supported": {requestOutcome{verb: VerbWatchList, err: serverError(422)},
			targetState{listIsFallback: true}, outcomeEffect{}},
		"no connection for a list": {requestOutcome{verb: VerbList, err: errRefused},
			paused(VerbList, status.ReasonUnreachable,
				soon), reported(VerbList, errRefused)},
		"no connection for a watch": {requestOutcome{verb: VerbWatch, err: errRefused},
			paused(VerbWatch, status.ReasonUnreachable, soon), reported(VerbWatch, errRefused)},
		"no connection for a watch-list": {requestOutcome{verb: VerbWatchList, err: errRefused},
			paused(VerbWatchList, status.ReasonUnreachable, soon), reported(VerbWatchList, errRefused)},
		"a list loses the connection": {requestOutcome{verb: VerbList, err: errLost},
			paused(VerbList, status.ReasonUnreachable,
				soon), reported(VerbList, errLost)},
		"a watch-list loses the connection": {requestOutcome{verb: VerbWatchList, err: errLost},
			paused(VerbWatchList, status.ReasonUnreachable, soon), reported(VerbWatchList, errLost)},
		"connection lost in the response body": {requestOutcome{verb: VerbList, err: io.ErrUnexpectedEOF},
			paused(VerbList, status.ReasonUnreachable, first), reported(VerbList, io.ErrUnexpectedEOF)},
		"no response": {requestOutcome{verb: VerbList, err: errNoAnswer},
			paused(VerbList, status.ReasonNoAnswer, 0), reported(VerbList, errNoAnswer)},
		"503 with Retry-After": {requestOutcome{verb: VerbList, err: serverError(503), retryAfter: time.Minute},
			paused(VerbList, status.ReasonThrottled, time.Minute), throttled(VerbList,
				serverError(503), time.Minute)},
		"expired watch request": {requestOutcome{verb: VerbWatch, err: serverError(410)}, targetState{},
			reported(VerbWatch, serverError(410))},
		"expired in an open watch": {requestOutcome{verb: VerbWatch, phase: phaseBroken, err: serverError(410)}, targetState{},
			reported(VerbWatch, serverError(410))},
		"expired watch-list": {requestOutcome{verb: VerbWatchList, err: serverError(410)}, targetState{},
			reported(VerbWatchList, serverError(410))},
		"context ended": {requestOutcome{verb: VerbList, err: context.Canceled}, targetState{}, outcomeEffect{}},
		"forbidden list": {requestOutcome{verb: VerbList, err: serverError(403)},
			paused(VerbList, status.ReasonForbidden, first), reported(VerbList, serverError(403))},
		"forbidden list with a fallback": {requestOutcome{verb: VerbList, err: serverError(403), forbiddenHandled: true}, targetState{},
			outcomeEffect{callForbidden: true, err: serverError(403)}},
		"forbidden watch with a fallback": {requestOutcome{verb: VerbWatch, err: serverError(403), forbiddenHandled: true}, targetState{},
			outcomeEffect{callForbidden: true, err: serverError(403)}},
		"forbidden watch-list with a fallback": {requestOutcome{verb: VerbWatchList, err: serverError(403), forbiddenHandled: true},
			targetState{listIsFallback: true}, outcomeEffect{}},
		"throttled list": {requestOutcome{verb: VerbList, err: serverError(429)},
			paused(VerbList, status.ReasonThrottled, first), throttled(VerbList, serverError(429), 0)},
		"throttled watch": {requestOutcome{verb: VerbWatch, err: serverError(429)},
			paused(VerbWatch, status.ReasonThrottled, first), throttled(VerbWatch, serverError(429), 0)},
		"throttled list with Retry-After": {requestOutcome{verb: VerbList, err: serverError(429), retryAfter: time.Minute},
			paused(VerbList, status.ReasonThrottled, time.Minute), throttled(VerbList,
				serverError(429), time.Minute)},
		"throttled watch-list with Retry-After": {requestOutcome{verb: VerbWatchList, err: serverError(429), retryAfter: time.Minute},
			paused(VerbWatchList, status.ReasonThrottled, time.Minute), throttled(VerbWatchList,
				serverError(429), time.Minute)},
		"failed conversion": {requestOutcome{verb: VerbList, err: conversionError(500)},
			paused(VerbList, status.ReasonConversionFailed, time.Second),
			reported(VerbList, conversionError(500))},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.outcome.now = start
			next, e := targetFacts{}.step(targetState{}, tt.outcome)
			if diff := cmp.Diff(tt.state, next,
				cmp.AllowUnexported(targetState{}, silenceRecord{})); diff != "" {
				t.Errorf("the state (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.effect, e, cmp.AllowUnexported(outcomeEffect{}),
				cmp.Comparer(sameText)); diff != "" {
				t.Errorf("the effect (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWatchesClosedImmediately checks that watches closed immediately are reported only if several
// consecutive ones had no event. A watch-list that completes its initial events counts as a watch.
func TestWatchesClosedImmediately(t *testing.T) {
	for _, verb := range []Verb{VerbWatch, VerbWatchList} {
		now := time.Unix(1000, 0)
		s := targetState{}
		watchClosed := func(duration time.Duration, sawLiveEvent bool) bool {
			o := requestOutcome{verb: verb, now: now}
			s, _ = targetFacts{}.step(s, o)
			if verb == VerbWatchList {
				o.phase = phaseListed
				s, _ = targetFacts{}.step(s, o)
			}
			now = now.Add(duration)
			next, e := targetFacts{}.step(s, requestOutcome{verb: verb, phase: phaseClosed, now: now,
				openFor:      duration,
				sawLiveEvent: sawLiveEvent})
			least := now.Add(backoffs[stageOrdinary].first)
			if duration < ShortWatch && next.pauseEnd.Before(least) {
				t.Errorf("%s: a watch that lasted %v is followed by a pause of only %v", verb, duration,
					next.pauseEnd.Sub(now))
			}
			s = next
			return e.reports && e.verb == VerbWatch && ReasonOf(e.err) == status.ReasonWatchClosed
		}
		var reported []bool
		for _, lasted := range []time.Duration{0, ShortWatch - 1, 0, 0, ShortWatch, 0, 0, 0} {
			reported = append(reported, watchClosed(lasted, false))
		}
		reported = append(reported, watchClosed(0, true), watchClosed(0, false), watchClosed(0, false),
			watchClosed(0, false))
		if want := []bool{false, false, true, true, false, false, false, true, false, false, true,
			true}; !slices.Equal(reported, want) {
			t.Errorf("%s: reported %v, want %v", verb, reported, want)
		}
	}
}

// sameText reports whether two errors have equal texts and reasons.
func sameText(a, b error) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error() &&
		apierrors.ReasonForError(a) == apierrors.ReasonForError(b))
}

// TestOnlyWatchesProveWatches checks that a successful list does not reset the failures of watches.
func TestOnlyWatchesProveWatches(t *testing.T) {
	now := time.Unix(1000, 0)
	s := targetState{}
	record := func(o requestOutcome) {
		o.now = now
		s, _ = targetFacts{}.step(s, o)
	}
	for range 3 {
		record(requestOutcome{verb: VerbList})
		record(requestOutcome{verb: VerbWatch, err: serverError(500)})
	}
	if s.failures != 3 {
		t.Errorf("failures = %d, want 3", s.failures)
	}
	record(requestOutcome{verb: VerbWatch})
	if s.failures != 3 {
		t.Errorf("after a watch without an event, failures = %d, want 3", s.failures)
	}
	s.rounds = 5
	now = now.Add(establishedAfter)
	record(requestOutcome{verb: VerbWatch, phase: phaseBroken, err: serverError(500)})
	if s.failures != 1 || s.rounds != 0 {
		t.Errorf("after an established watch, failures = %d and rounds = %d, want 1 and 0", s.failures,
			s.rounds)
	}
	record(requestOutcome{verb: VerbWatch, phase: phaseFlowing})
	if s.failures != 0 || !s.pauseEnd.IsZero() {
		t.Errorf("after an event, failures = %d and the pause ends at %v, want 0 and no pause", s.failures,
			s.pauseEnd)
	}
}

// slowEvents is a proxy that sends one event of a watch after each pause, the last one forever.
type slowEvents struct {
	pause time.Duration
	kinds []string // ADDED, MODIFIED, BOOKMARK, or END for the bookmark that ends the initial events
}

func (s slowEvents) RoundTrip(r *http.Request) (*http.Response, error) {
	body, events := io.Pipe()
	go func() { // ended by the end of the request
		for n := 0; ; n++ {
			kind, object := s.kinds[min(n, len(s.kinds)-1)], jsonGadget
			if kind == "END" {
				kind, object = "BOOKMARK", `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}`
			}
			if _, err := io.WriteString(events, `{"type":"`+kind+`","object":`+object+"}\n"); err != nil {
				return
			}
			select {
			case <-time.After(s.pause):
			case <-r.Context().Done():
				events.CloseWithError(r.Context().Err())
				return
			}
		}
	}()
	return &http.Response{StatusCode: http.StatusOK,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Request: r}, nil
}

// TestProgressOfWatchLists verifies that a watch-list ends with an error, without its slot, if its events are
// no progress of the initial list, whatever the pauses; and that a slow one with progress is completed.
func TestProgressOfWatchLists(t *testing.T) {
	many := slices.Repeat([]string{"ADDED"}, 10000)
	for name, test := range map[string]struct {
		slowEvents
		stalled time.Duration // at the latest; zero if the initial list is completed
	}{
		"additions without an end": {slowEvents{time.Second, []string{"ADDED"}}, 12 * time.Second},
		"modifications":            {slowEvents{time.Second, []string{"ADDED", "MODIFIED"}}, 8 * time.Second},
		"bookmarks":                {slowEvents{time.Second, []string{"ADDED", "BOOKMARK"}}, 8 * time.Second},
		"silence after a bookmark": {slowEvents{time.Hour, []string{"BOOKMARK"}}, 6 * time.Second},
		"many objects, slowly":     {slowEvents{9 * time.Millisecond, append(many, "END")}, 0},
		"modifications at the end": {slowEvents{time.Millisecond, append(many, "MODIFIED", "END")}, 0},
		"pauses":                   {slowEvents{3 * time.Second, []string{"ADDED", "ADDED", "END"}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newInlineListWatch(t, &rest.Config{Host: "http://server.test", QPS: -1},
					&http.Client{Transport: test.slowEvents}, packedObjects)
				initial, begun, stalled := true, time.Now(), time.Duration(0)
				err := w.WatchInline(t.Context(),
					&metav1.ListOptions{SendInitialEvents: &initial},
					func(event watch.Event) bool {
						if event.Type == watch.Error {
							stalled = time.Since(begun)
						}
						return !endsInitialEvents(event)
					})
				if err != nil || stalled > test.stalled || (stalled > 0) != (test.stalled > 0) {
					t.Errorf("WatchInline() = %v, stalled after %v, want %v", err, stalled, test.stalled)
				}
				if held, _, _ := w.limiter.Load(); held != 0 {
					t.Errorf("%d slots are held, want none", held)
				}
			})
		})
	}
}

// TestClientsShareConnections verifies that the clients of one connection, and only these, share what they
// have learned about watches.
func TestClientsShareConnections(t *testing.T) {
	shared, err := NewConnection(&rest.Config{Host: "https://a.test"}, nil)
	must(t, err)
	clients := map[*watchRecord]int{}
	for _, config := range []*rest.Config{{Host: "https://a.test"}, {Host: "https://a.test"},
		{Host: "https://b.test"}, shared.Config(), shared.Config()} {
		client, err := NewClient(config, nil)
		must(t, err)
		clients[client.watches]++
	}
	if len(clients) != 3 || clients[&shared.watches] != 2 {
		t.Errorf("the numbers of clients by record are %v, want 2, 1 and 2", clients)
	}
}
