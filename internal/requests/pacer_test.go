package requests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
	"github.com/crdcache/crdcache/test/testcluster"
)

// TestPacerPauses checks the pauses after each kind of failure.
func TestPacerPauses(t *testing.T) {
	tests := map[string]struct {
		known       bool
		err         error
		retryAfter  time.Duration
		least, most []time.Duration // of the pauses after the failures
	}{
		"connection refused": {err: errRefused, least: seconds(0.5, 0.5, 0.5), most: seconds(1, 1, 1)},
		"internal error":     {err: serverError(500), least: seconds(0.8, 1.6), most: seconds(1.6, 3.2)},
		"forbidden": {err: serverError(403), least: seconds(0.8, 1.6, 3.2, 6.4),
			most: seconds(1.6, 3.2, 6.4, 12.8)},
		"not found": {err: serverError(404), least: seconds(0.8), most: seconds(1.6)},
		"not found though it is served": {known: true, err: serverError(404),
			least: seconds(0.25, 0.5, 1, 2, 4, 4), most: seconds(0.32, 0.63, 1.25, 2.5, 5, 5)},
		"throttled for a time": {err: serverError(429), retryAfter: 20 * time.Second,
			least: seconds(20, 20), most: seconds(22, 22)},
		"throttled": {err: serverError(429), least: seconds(0.8, 1.6), most: seconds(1.6, 3.2)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := NewPacer(tt.known, false, NewRetrySignal())
				if pause := measurePause(t, p); pause != 0 {
					t.Errorf("the first attempt begins after %v, want no pause", pause)
				}
				for i := range tt.least {
					p.recordFailure(tt.err, tt.retryAfter)
					if pause := measurePause(t, p); pause < tt.least[i] || pause > tt.most[i] {
						t.Errorf("pause %d is %v, want %v to %v", i, pause, tt.least[i], tt.most[i])
					}
				}
				p.record(requestOutcome{verb: VerbList})
				p.recordFailure(tt.err, tt.retryAfter)
				if pause := measurePause(t, p); pause > max(tt.most[0], 2*backoffs[stageRelist].first) {
					t.Errorf("the pause after a success is %v, want a short one", pause)
				}
			})
		})
	}
}

func seconds(s ...float64) []time.Duration {
	var all []time.Duration
	for _, s := range s {
		all = append(all, time.Duration(s*float64(time.Second)))
	}
	return all
}

// measurePause returns the pause before the next attempt.
func measurePause(t *testing.T, p *Pacer) time.Duration {
	t.Helper()
	before := time.Now()
	must(t, p.awaitRound(t.Context()))
	return time.Since(before)
}

// recordFailure records the failure of a list.
func (p *Pacer) recordFailure(err error, retryAfter time.Duration) {
	p.record(requestOutcome{verb: VerbList, err: err, retryAfter: retryAfter})
}

func TestRetrySignalEndsPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retry := NewRetrySignal()
		p := NewPacer(false, false, retry)
		measurePause(t, p)
		p.recordFailure(serverError(429), time.Minute)
		time.AfterFunc(time.Second, retry.Send)
		if pause := measurePause(t, p); pause != time.Second {
			t.Errorf("the pause lasts %v, want a second", pause)
		}
		p.recordFailure(serverError(429), time.Minute)
		if pause := measurePause(t, p); pause < 60*time.Second || pause > 75*time.Second {
			t.Errorf("the next pause is %v, want 60s to 75s because earlier failures still count", pause)
		}
		retry.Send() // during a request
		p.recordFailure(serverError(429), time.Minute)
		if pause := measurePause(t, p); pause != 0 {
			t.Errorf("the pause after a signal during a request is %v, want 0", pause)
		}

		why := errors.New("stopped")
		p.recordFailure(serverError(429), time.Minute)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		before := time.Now()
		if err := p.awaitWatch(ctx); !errors.Is(err, why) || time.Since(before) != time.Second {
			t.Errorf("a cancelled awaitWatch() = %v after %v, want the cause after 1s", err,
				time.Since(before))
		}
	})
}

// serverError returns client-go's error for a response with this code and no usable body.
func serverError(code int) error {
	return apierrors.NewGenericServerResponse(code, "get", schema.GroupResource{Resource: "widgets"},
		"", "", 0, true)
}

// conversionError returns the API server's error for a failing conversion webhook.
func conversionError(code int32) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code,
		Message: `conversion webhook for example.com/v1, Kind=Widget failed: Post "https://hook.default.svc:443/convert?timeout=30s": no endpoints available`,
	}}
}

var errRefused = &url.Error{Op: "Get", URL: "https://x", Err: &net.OpError{
	Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED),
}}

func TestReasonOf(t *testing.T) {
	tooLarge := apierrors.NewTimeoutError("Too large resource version: 9, current: 1", 1)
	tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	tests := []struct {
		name string
		err  error
		want status.Reason
	}{
		{"success", nil, status.ReasonNone},
		{"expired", apierrors.NewResourceExpired("too old"), status.ReasonNone},
		{"410 without a body", serverError(410), status.ReasonNone},
		{"a version from the future", tooLarge, status.ReasonNone},
		{"another timeout", apierrors.NewTimeoutError("slow", 1), status.ReasonRequestFailed},
		{"401", serverError(401), status.ReasonUnauthorized},
		{"403", serverError(403), status.ReasonForbidden},
		{"404", serverError(404), status.ReasonNotFound},
		{"405", serverError(405), status.ReasonVerbUnsupported},
		{"429", serverError(429), status.ReasonThrottled},
		{"400", serverError(400), status.ReasonRequestFailed},
		{"422", serverError(422), status.ReasonRequestFailed},
		{"500", serverError(500), status.ReasonRequestFailed},
		{"503", serverError(503), status.ReasonRequestFailed},
		{"wrapped 403", fmt.Errorf("list: %w", serverError(403)), status.ReasonForbidden},
		{"wrapped 410", fmt.Errorf("watch: %w", apierrors.NewResourceExpired("too old")), status.ReasonNone},
		{"connection refused", errRefused, status.ReasonUnreachable},
		{"no such host", &net.DNSError{Err: "no such host", IsNotFound: true}, status.ReasonUnreachable},
		{"deadline", context.DeadlineExceeded, status.ReasonUnreachable},
		{"broken off", fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), status.ReasonUnreachable},
		{"an answer that cannot be read", errors.New("cannot decode"), status.ReasonRequestFailed},
		{"conversion", conversionError(500), status.ReasonConversionFailed},
		{"conversion, for the server's cache", conversionError(429), status.ReasonConversionFailed},
		{"conversion, in the words of a client error", conversionError(400), status.ReasonRequestFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := ReasonOf(tt.err); got != tt.want {
				t.Errorf("ReasonOf(%v) = %q, want %q", tt.err, got, tt.want)
			}
		})
	}
}

// TestClosedWatchesCauseNoMoreLists compares the lists with client-go's while the server accepts watches and
// closes them immediately, without an error. The failure is reported, and changes are seen after the longest
// pause at the latest.
func TestClosedWatchesCauseNoMoreLists(t *testing.T) {
	for name, faults := range map[string][]apitest.Fault{
		"watches and watch-lists": {{Verb: "watch", Effect: testcluster.Close("")},
			{Verb: "watch-list", Effect: testcluster.Close("")}},
		"watches, there is no watch-list": {{Verb: "watch", Effect: testcluster.Close("")},
			{Verb: "watch-list", Status: 400}},
		"watch-lists after their list": {{Verb: "watch", Effect: testcluster.Close("")},
			{Verb: "watch-list", Effect: testcluster.Close(metav1.InitialEventsAnnotationKey)}},
	} {
		t.Run(name, func(t *testing.T) {
			withVirtualClock(t, func(r *clientComparison) {
				for _, f := range faults {
					r.addFault(f)
				}
				r.start(false)
				if elapsed := r.awaitSync(gadgets); elapsed > 2*backoffs[stageOrdinary].first {
					t.Errorf("synced after %v, want two pauses at most", elapsed)
				}
				for _, after := range []time.Duration{10 * time.Minute, 20 * time.Minute} {
					time.Sleep(after)
					for _, verb := range []string{"list", "watch-list", "watch"} {
						ours, others := r.count(gadgets, verb), r.count(clientGoGVR, verb)
						if verb == "watch" {
							// ^ after which client-go continues with the same watch
							others += r.count(clientGoGVR, "watch-list")
						}
						t.Logf("after %v more: %d times %s, client-go %d", after, ours, verb, others)
						if ours > others {
							t.Errorf("%s: %d requests, want at most as many as client-go, %d", verb, ours,
								others)
						}
					}
				}
				if failures := r.reports.failures(); len(failures) < 20 ||
					slices.ContainsFunc(failures,
						func(r status.Reason) bool { return r != status.ReasonWatchClosed }) {
					t.Errorf("reported the failures %q, want only closed watches", failures)
				}
				r.create("late")
				time.Sleep(backoffs[stageRelist].longest)
				if keys := r.stores[gadgets].ListKeys(); len(keys) != 2 {
					r.Errorf("keys a minute after another object was created = %q, want 2", keys)
				}
			})
		})
	}
}

// TestWatchListsThatEndEarly checks that a watch-list closed during its initial events is followed by a list,
// every time. client-go requests another watch-list without a pause, and never lists.
func TestWatchListsThatEndEarly(t *testing.T) {
	withVirtualClock(t, func(r *clientComparison) {
		r.addFault(apitest.Fault{Verb: "watch-list", Effect: testcluster.Close("ADDED")})
		r.startOurs(false)
		if elapsed := r.awaitSync(gadgets); elapsed > time.Second {
			t.Errorf("synced after %v, want at most a second", elapsed)
		}
		time.Sleep(time.Minute)
		r.server.CloseClientConnections() // after this time the watch continues from its version
		time.Sleep(10 * time.Minute)
		if lists, watchLists := r.count(gadgets, "list"), r.count(gadgets, "watch-list"); lists != 1 ||
			watchLists != 1 {
			t.Errorf("%d lists and %d watch-lists, want 1 each because the watch continues", lists,
				watchLists)
		}
		if len(r.reports.failures()) > 0 {
			t.Errorf("reported the failures %q, want none", r.reports.failures())
		}
	})
}

// TestWatchesClosedAfterAnEvent checks that a watch that is closed after an event is not a failure, and that
// the next watch waits for a moment. client-go does not wait.
func TestWatchesClosedAfterAnEvent(t *testing.T) {
	withVirtualClock(t, func(r *clientComparison) {
		r.addFault(apitest.Fault{Verb: "watch-list", Status: 400})
		r.addFault(apitest.Fault{Verb: "watch", Effect: testcluster.Close("ADDED")})
		r.startOurs(false)
		r.awaitSync(gadgets)
		for n := range 100 {
			r.create(fmt.Sprint("b", n))
		}
		time.Sleep(3 * time.Minute)
		if keys := r.stores[gadgets].ListKeys(); len(keys) != 101 {
			t.Errorf("%d objects, want 101", len(keys))
		}
		if watches := r.count(gadgets, "watch"); watches < 100 ||
			watches > 3*60*1000/int(backoffs[stageOrdinary].first.Milliseconds()) {
			t.Errorf("%d watches in three minutes, want at least 100 with pauses", watches)
		}
		if lists := r.count(gadgets, "list"); lists != 1 || len(r.reports.failures()) > 0 {
			t.Errorf("%d lists and the failures %q, want 1 and none", lists, r.reports.failures())
		}
	})
}
