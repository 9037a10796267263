package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/requests"
)

// serverError returns client-go's error for a response with this code and no usable body.
func serverError(code int) error {
	return apierrors.NewGenericServerResponse(code, "get", schema.GroupResource{Resource: "widgets"},
		"", "", 0, true)
}

var errRefused = &url.Error{Op: "Get", URL: "https://x", Err: &net.OpError{
	Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED),
}}

func TestState(t *testing.T) {
	begun := time.Unix(1000, 0)
	with := func(changes ...func(*observations, *partitionRecord)) observations {
		f := observations{started: true, running: true}
		everything := &partitionRecord{}
		f.partitions.set(everything)
		for _, change := range changes {
			change(&f, everything)
		}
		f.partitions.update(everything)
		return f
	}
	synced := func(f *observations, _ *partitionRecord) { f.synced = true }
	exists := func(f *observations, _ *partitionRecord) { f.exists = true }
	stopped := func(f *observations, _ *partitionRecord) { f.stopped = true }
	waiting := func(_ *observations, s *partitionRecord) { s.waitingSince = begun }
	failed := func(n int, r status.Reason) func(*observations, *partitionRecord) {
		return func(_ *observations, s *partitionRecord) {
			s.fail(requests.VerbList, r, nil, begun, false).failures = n
			s.waitingSince = begun
		}
	}
	unwatched := func(n int, r status.Reason) func(*observations, *partitionRecord) {
		return func(_ *observations, s *partitionRecord) {
			s.fail(requests.VerbWatch, r, nil, begun, false).failures = n
		}
	}
	recently := func(_ *observations, s *partitionRecord) {
		at := begun.Add(29 * time.Second)
		s.fail(requests.VerbList, status.ReasonRequestFailed, nil, at, false)
		s.waitingSince = at
	}
	opened := func(after time.Duration) func(*observations, *partitionRecord) {
		return func(_ *observations, s *partitionRecord) { s.watchOpenedAt = begun.Add(after) }
	}
	otherPartition := func(r status.Reason) func(*observations, *partitionRecord) {
		return func(f *observations, _ *partitionRecord) {
			other := &partitionRecord{name: "other", waitingSince: begun}
			other.fail(requests.VerbList, r, nil, begun, false)
			f.partitions.set(other)
		}
	}
	unknownNamespaces := func(r status.Reason) func(*observations, *partitionRecord) {
		return func(f *observations, _ *partitionRecord) {
			f.recordUnknownNamespaces("namespaces", r, nil, begun)
		}
	}
	tests := []struct {
		name         string
		observations observations
		after        time.Duration
		want         State
		stale        bool
		// settled is true if waiters return. deadline is the time of the next change of the state, or zero if
		// there is none.
		settled  bool
		deadline time.Duration
	}{
		{"made", observations{}, 0, status.Pending, false, false, 0},
		{"started, nothing runs", observations{started: true}, 0, status.Pending, false, false, 0},
		{"running", with(), 0, status.Syncing, false, false, 0},
		{"synced", with(synced), time.Hour, status.Synced, false, true, 0},
		{"stopped before the start", observations{stopped: true}, 0, status.Stopped, false, true, 0},
		{"stopped", with(synced, stopped), 0, status.Stopped, false, true, 0},
		{"stopped while failing", with(synced, stopped, failed(9, status.ReasonForbidden)), 0, status.Stopped,
			true, true, 0},
		{"gone", observations{started: true, typeGone: true, reason: status.ReasonNotInstalled}, 0, status.Gone,
			false, false, 0},

		{"requested without a response yet", with(waiting), 9 * time.Second, status.Syncing, false, false,
			10 * time.Second},
		{"not answered for 10 s while syncing", with(waiting), 10 * time.Second, status.Degraded,
			false, false, 0},
		{"synced, not answered yet", with(synced, waiting), 29 * time.Second, status.Synced, false, true,
			30 * time.Second},
		{"synced, not answered for 30 s", with(synced, waiting), 30 * time.Second, status.Degraded,
			true, false, 0},

		{"one failure", with(failed(1, status.ReasonRequestFailed)), 0, status.Syncing, false, false,
			10 * time.Second},
		{"failures short of the limit", with(failed(2, status.ReasonRequestFailed)), 0, status.Syncing, false,
			false, 10 * time.Second},
		{"failures at the limit", with(failed(3, status.ReasonRequestFailed)), 0, status.Degraded, false,
			false, 10 * time.Second},
		{"one failure, 10 s ago", with(failed(1, status.ReasonRequestFailed)), 10 * time.Second,
			status.Degraded, false, false, 0},
		{"throttled for long", with(failed(9, status.ReasonThrottled)), 0, status.Degraded, false, false,
			10 * time.Second},
		{"synced and many failures", with(synced, failed(9, status.ReasonRequestFailed)), 29 * time.Second,
			status.Synced, false, true, 30 * time.Second},
		{"synced and failing for 30 s", with(synced, failed(9, status.ReasonRequestFailed)),
			30 * time.Second, status.Degraded, true, false, 0},
		{"watches fail, lists do not", with(synced, unwatched(9, status.ReasonRequestFailed)),
			29 * time.Second, status.Synced, false, true, 30 * time.Second},
		{"watches fail for 30 s", with(synced, unwatched(9, status.ReasonRequestFailed)), 30 * time.Second,
			status.Degraded, true, false, 0},
		{"... and a list fails", with(synced, unwatched(9, status.ReasonRequestFailed), recently),
			30 * time.Second, status.Degraded, true, false, 59 * time.Second},
		{"watches are closed at once", with(synced, unwatched(3, status.ReasonWatchClosed), opened(0)),
			999 * time.Millisecond, status.Synced, false, true, time.Second},
		{"... for 30 s", with(synced, unwatched(3, status.ReasonWatchClosed), opened(30*time.Second)),
			30 * time.Second, status.Degraded, true, false, 31 * time.Second},
		{"... until one lasts", with(synced, unwatched(3, status.ReasonWatchClosed),
			opened(30*time.Second)), 31 * time.Second, status.Synced, false, true, 0},

		{"forbidden at once", with(failed(1, status.ReasonForbidden)), 0, status.Degraded, false, true,
			10 * time.Second},
		{"synced and forbidden since", with(synced, failed(1, status.ReasonForbidden)), 0, status.Degraded,
			true, true, 30 * time.Second},
		{"watching is forbidden", with(synced, unwatched(1, status.ReasonForbidden)), 0, status.Degraded,
			true, true, 0},
		{"no such verb at once", with(failed(1, status.ReasonVerbUnsupported)), 0, status.Degraded, false,
			true, 10 * time.Second},
		{"conversion at once", with(synced, failed(1, status.ReasonConversionFailed)), 0, status.Degraded,
			true, false, 30 * time.Second},
		{"not found at once", with(failed(1, status.ReasonNotFound)), 0, status.Degraded, false, true,
			10 * time.Second},
		{"not found although it exists", with(exists, failed(9, status.ReasonNotFound)), 29 * time.Second,
			status.Syncing, false, false, 30 * time.Second},
		{"not found for 30 s although it exists", with(exists, failed(9, status.ReasonNotFound)),
			30 * time.Second, status.Degraded, false, true, 0},

		{"unreachable while syncing", with(failed(9, status.ReasonUnreachable)), time.Hour, status.Syncing,
			false, false, 0},
		{"unreachable once synced", with(synced, failed(9, status.ReasonUnreachable)), 29 * time.Second,
			status.Synced, false, true, 30 * time.Second},
		{"unreachable for 30 s", with(synced, failed(9, status.ReasonUnreachable)), 30 * time.Second,
			status.Synced, true, true, 0},
		{"unauthorized while syncing", with(failed(9, status.ReasonUnauthorized)), time.Hour, status.Syncing,
			false, true, 0},
		{"unauthorized once synced", with(synced, failed(9, status.ReasonUnauthorized)), time.Hour,
			status.Synced, true, true, 0},

		{"one of two partitions is forbidden", with(otherPartition(status.ReasonForbidden)), 0, status.Degraded, false,
			true, 10 * time.Second},
		{"nothing is read", observations{started: true, running: true, synced: true}, 0, status.Syncing,
			true, false, 0},
		{"nothing is to be read", observations{started: true, running: true, synced: true, selectsNothing: true}, 0,
			status.Synced, false, true, 0},
		{"unknown namespaces", with(unknownNamespaces(status.ReasonRequestFailed)),
			0, status.Syncing, false, false,
			10 * time.Second},
		{"... for 10 s", with(unknownNamespaces(status.ReasonRequestFailed)), 10 * time.Second, status.Degraded,
			false, false, 0},
		{"... once synced", with(synced, unknownNamespaces(status.ReasonUnreachable)),
			0, status.Degraded, true, false,
			30 * time.Second},
		{"the worst partition counts", with(failed(1, status.ReasonUnreachable),
			otherPartition(status.ReasonForbidden)), 0, status.Degraded, false, true, 10 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			now := begun.Add(tt.after)
			got := tt.observations.state(now)
			if got != tt.want {
				t.Errorf("state = %s, want %s", got, tt.want)
			}
			if stale := tt.observations.stale(now); stale != tt.stale {
				t.Errorf("stale = %v, want %v", stale, tt.stale)
			}
			reason := tt.observations.reason
			if tt.observations.running {
				reason = tt.observations.worstRequestProblem(now).reason
			}
			if settled := (Status{State: got, Reason: reason}).Settled(); settled != tt.settled {
				t.Errorf("%s (%s): Settled() = %v, want %v", got, reason, settled, tt.settled)
			}
			deadline := tt.observations.deadline(now)
			if want := begun.Add(tt.deadline); tt.deadline == 0 && !deadline.IsZero() || tt.deadline != 0 &&
				!deadline.Equal(want) {
				t.Errorf("deadline = %v, want %v", deadline, want)
			}
		})
	}
}

type clockedHealth struct {
	*testing.T
	*Health
	clock time.Time
}

func newClockedHealth(t *testing.T) *clockedHealth {
	w := &clockedHealth{T: t, clock: time.Unix(1000, 0)}
	w.Health = New(widgets, "", func() time.Time { return w.clock })
	w.Started()
	w.Begin("", "")
	return w
}

// advance moves the clock and calls check.
func (w *clockedHealth) advance(d time.Duration) {
	w.clock = w.clock.Add(d)
	w.check()
}

func (w *clockedHealth) expect(step string, want Status) {
	w.Helper()
	want.GVR, want.Incarnation = widgets, 1
	if got, _ := w.Snapshot(); got != want {
		w.Errorf("%s (-want +got):\n%s", step, cmp.Diff(want, got, cmpopts.EquateErrors()))
	}
}

func TestHealthRequests(t *testing.T) {
	w := newClockedHealth(t)
	r := w.Reporter(1, "")
	begun := w.clock
	r.RequestStarted(requests.VerbList)
	waiting := Status{State: status.Syncing, Message: "waiting for the first list", Since: begun}
	w.expect("begun", waiting)

	_, unchanged := w.Snapshot()
	r.RequestEnded(requests.VerbList, fmt.Errorf("list: %w", context.Canceled))
	w.expect("cancelled", waiting)
	select {
	case <-unchanged:
		t.Error("a cancelled request notified waiters")
	default:
	}

	w.advance(9 * time.Second)
	w.expect("short of patience", waiting)
	w.advance(time.Second)
	w.expect("no answer", Status{State: status.Degraded, Reason: status.ReasonNoAnswer,
		Message: "the server does not answer", Since: w.clock})
	r.RequestEnded(requests.VerbList, nil)
	contact := w.clock
	w.Synced(1)
	w.expect("synced", Status{State: status.Synced, Since: contact, LastContact: contact})

	r.RequestStarted(requests.VerbList)
	boom := errors.New("two\n\tlines")
	for range 5 {
		w.advance(time.Second)
		r.RequestEnded(requests.VerbWatch, boom)
	}
	failing := Status{
		State: status.Synced, Reason: status.ReasonRequestFailed, Message: "watch: two lines", Since: contact,
		LastError: boom, LastContact: contact,
	}
	w.expect("failures", failing)
	w.advance(25 * time.Second)
	failing.State, failing.Stale, failing.Since = status.Degraded, true, w.clock
	w.expect("contact lost", failing)

	w.advance(time.Second)
	r.RequestEnded(requests.VerbWatch, nil)
	w.expect("a watch", Status{State: status.Synced, Since: w.clock, LastContact: w.clock})
	back := w.clock
	w.advance(10 * time.Minute)
	w.expect("a quiet watch", Status{State: status.Synced, Since: back, LastContact: back})
	if !w.mu.timerAt.IsZero() {
		t.Errorf("the timer of a quiet watch fires at %v, want none", w.mu.timerAt)
	}
	r.RequestEnded(requests.VerbWatch, apierrors.NewResourceExpired("too old"))
	expired := w.clock
	w.expect("an expired watch", Status{State: status.Synced, Since: back, LastContact: expired})
	r.RequestEnded(requests.VerbWatchList, nil)
	w.expect("a relist", Status{State: status.Synced, Since: back, LastContact: expired,
		Relists: status.Relists{Expired: 1}})

	w.advance(29 * time.Second)
	r.RecordContact(true)
	w.advance(29 * time.Second)
	sign := w.clock.Add(-29 * time.Second)
	w.expect("a long watch-list", Status{State: status.Synced, Since: back, LastContact: sign,
		Relists: status.Relists{Expired: 1}})
	r.RecordContact(false)
	w.advance(time.Hour)
	sign = w.clock.Add(-time.Hour)
	w.expect("its end", Status{State: status.Synced, Since: back, LastContact: sign,
		Relists: status.Relists{Expired: 1}})

	w.Stopped("released")
	w.expect("stopped", Status{State: status.Stopped, Message: "released", Since: w.clock, LastContact: sign,
		Relists: status.Relists{Expired: 1}})
}

// TestFailuresNeverImprove verifies for all sequences of three observations that a failure, whatever its
// reason is, ends neither Degraded nor Stale. Only a success or an answer of the protocol does.
func TestFailuresNeverImprove(t *testing.T) {
	type observation struct {
		name    string
		observe func(Reporter)
		isError bool
	}
	var observations []observation
	for _, verb := range []requests.Verb{requests.VerbList, requests.VerbWatch, requests.VerbWatchList} {
		for name, err := range map[string]error{"refused": errRefused, "undecodable": errors.New("decode"),
			"401": apierrors.NewUnauthorized(""), "403": serverError(403), "404": serverError(404),
			"405": serverError(405), "429": serverError(429), "500": serverError(500)} {
			observations = append(observations, observation{verb.String() + " " + name,
				func(r Reporter) { r.RequestEnded(verb, err) }, true})
		}
		observations = append(observations,
			observation{verb.String() + " throttled", func(r Reporter) { r.Throttled(verb) }, true},
			observation{verb.String() + " expired",
				func(r Reporter) { r.RequestEnded(verb, apierrors.NewResourceExpired("")) }, false},
			observation{verb.String() + " accepted", func(r Reporter) { r.RequestEnded(verb, nil) }, false})
	}
	observations = append(observations,
		observation{"event", func(r Reporter) { r.RecordContact(false) }, false},
		observation{"12 s", func(Reporter) { time.Sleep(12 * time.Second) }, false},
		observation{"31 s", func(Reporter) { time.Sleep(31 * time.Second) }, false})
	synctest.Test(t, func(t *testing.T) {
		for _, synced := range []bool{false, true} {
			for n := range len(observations) * len(observations) * len(observations) {
				h := New(widgets, "", time.Now)
				incarnation := h.Begin("v1", "")
				h.SetServed(true, false)
				r := h.Reporter(incarnation, "")
				if synced {
					r.RequestEnded(requests.VerbList, nil)
					h.Synced(incarnation)
				}
				history := fmt.Sprintf("synced %t", synced)
				for range 3 {
					o := observations[n%len(observations)]
					n /= len(observations)
					before, _ := h.Snapshot()
					r.RequestStarted(requests.VerbList)
					o.observe(r)
					after, _ := h.Snapshot()
					history += ", " + o.name
					if o.isError && (before.State == status.Degraded && after.State != status.Degraded ||
						before.Stale && !after.Stale) {
						t.Fatalf("%s: %v became %v", history, before, after)
					}
				}
				h.Stopped("")
			}
		}
	})
}

func TestHealthForbidden(t *testing.T) {
	w := newClockedHealth(t)
	r := w.Reporter(1, "")
	r.RequestEnded(requests.VerbList, nil)
	w.Synced(1)
	denied := serverError(403)
	r.RequestEnded(requests.VerbWatch, denied)
	want := Status{
		State: status.Degraded, Reason: status.ReasonForbidden, Message: "watch denied: (get widgets)",
		Stale: true,
		Since: w.clock, LastError: denied, LastContact: w.clock,
	}
	w.expect("watch denied", want)
	r.RequestEnded(requests.VerbList, nil)
	want.Relists.Failed = 1
	w.expect("a list", want)
	r.RequestEnded(requests.VerbWatchList, nil)
	w.expect("allowed", Status{State: status.Synced, Since: w.clock, LastContact: w.clock,
		Relists: status.Relists{Failed: 2}})
}

func TestRelistReasons(t *testing.T) {
	tooLarge := apierrors.NewTimeoutError("Too large resource version: 9, current: 1", 1)
	tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	w := newClockedHealth(t)
	r := w.Reporter(1, "")
	r.RequestEnded(requests.VerbList, serverError(500)) // before the first list there is no relist
	r.RequestEnded(requests.VerbList, nil)
	r.RequestEnded(requests.VerbListMore, nil)
	w.Synced(1)
	for _, err := range []error{serverError(410), tooLarge, serverError(500), errRefused} {
		r.RequestEnded(requests.VerbWatch, err)
		r.RequestEnded(requests.VerbList, nil)
		r.RequestEnded(requests.VerbListMore, nil)
		r.RequestEnded(requests.VerbWatch, nil)
	}
	s, _ := w.Snapshot()
	if diff := cmp.Diff(status.Relists{Expired: 1, TooLarge: 1, Failed: 2}, s.Relists); diff != "" {
		t.Errorf("relists (-want +got):\n%s", diff)
	}
}

// TestRepeatedRelists checks that a server that only causes relists is a problem, although each response is
// part of the protocol.
func TestRepeatedRelists(t *testing.T) {
	w := newClockedHealth(t)
	r := w.Reporter(1, "")
	expired := serverError(410)
	for range 2 {
		r.RequestStarted(requests.VerbList)
		r.RequestEnded(requests.VerbWatchList, expired)
		w.advance(10 * time.Second)
	}
	if s, _ := w.Snapshot(); s.State != status.Syncing || s.Reason != status.ReasonNone {
		t.Errorf("after two relists: %+v, want Syncing", s)
	}
	r.RequestStarted(requests.VerbList)
	r.RequestEnded(requests.VerbWatchList, expired)
	if s, _ := w.Snapshot(); s.State != status.Degraded || s.Reason != status.ReasonRequestFailed ||
		!errors.Is(s.LastError, expired) {
		t.Errorf("after three relists: %+v, want Degraded", s)
	}
	r.RequestEnded(requests.VerbWatchList, nil)
	r.RecordContact(false)
	w.Synced(1)
	for range 5 { // as when idle watches end
		w.advance(10 * time.Minute)
		r.RequestEnded(requests.VerbWatch, expired)
		r.RequestEnded(requests.VerbWatchList, nil)
		r.RequestEnded(requests.VerbWatch, nil)
		if s, _ := w.Snapshot(); s.State != status.Synced || s.Reason != status.ReasonNone {
			t.Errorf("after rare relists: %+v, want Synced", s)
		}
	}
}

// TestLateReports verifies that late reports of an earlier incarnation are dropped.
func TestLateReports(t *testing.T) {
	h := New(widgets, "", time.Now)
	h.Started()
	first := h.Begin("", "1")
	h.SetGone(status.ReasonNotInstalled)
	r := h.Reporter(1, "")
	r.RequestStarted(requests.VerbList)
	r.RequestEnded(requests.VerbList, errRefused)
	r.RecordContact(true)
	if s, _ := h.Snapshot(); s.State != status.Gone || s.LastError != nil || !s.LastContact.IsZero() {
		t.Errorf("a request that ended late changed the status to %+v", s)
	}
	h.Begin("", "2")
	h.Synced(first)
	if s, _ := h.Snapshot(); s.State != status.Syncing || s.UID != "2" {
		t.Errorf("a late sync changed the status to %+v", s)
	}
}

var (
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	gadgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
)
