package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// serverError is what client-go makes of a response with this code and no usable body.
func serverError(code int) error {
	return apierrors.NewGenericServerResponse(code, "get", schema.GroupResource{Resource: "widgets"}, "", "", 0, true)
}

var errRefused = &url.Error{Op: "Get", URL: "https://x", Err: &net.OpError{
	Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED),
}}

func TestState(t *testing.T) {
	running := facts{started: true, running: true}
	with := func(changes ...func(*facts)) facts {
		f := running
		for _, change := range changes {
			change(&f)
		}
		return f
	}
	synced := func(f *facts) { f.synced = true }
	stopped := func(f *facts) { f.stopped = true }
	failed := func(n int, r Reason) func(*facts) {
		return func(f *facts) { f.failures, f.reason = n, r }
	}
	tests := []struct {
		name    string
		facts   facts
		want    State
		settled bool
	}{
		{"made", facts{}, StatePending, false},
		{"started, nothing runs", facts{started: true}, StatePending, false},
		{"running", running, StateSyncing, false},
		{"synced", with(synced), StateSynced, true},
		{"stopped before the start", facts{stopped: true}, StateStopped, true},
		{"stopped", with(synced, stopped), StateStopped, true},
		{"stopped while failing", with(stopped, failed(9, ReasonForbidden)), StateStopped, true},
		{"gone", facts{started: true, gone: true, reason: ReasonNotInstalled}, StateGone, false},
		{"one failure", with(failed(1, ReasonUnreachable)), StateSyncing, false},
		{"failures short of the limit", with(failed(failuresUntilDegraded-1, ReasonUnreachable)), StateSyncing, false},
		{"failures at the limit", with(failed(failuresUntilDegraded, ReasonUnreachable)), StateDegraded, false},
		{"throttled for long", with(failed(9, ReasonThrottled)), StateDegraded, false},
		{"failing for long", with(failed(9, ReasonRequestFailed)), StateDegraded, false},
		{"forbidden at once", with(failed(1, ReasonForbidden)), StateDegraded, true},
		{"unauthorized at once", with(failed(1, ReasonUnauthorized)), StateDegraded, true},
		{"not found at once", with(failed(1, ReasonNotFound)), StateDegraded, true},
		{"no such verb at once", with(failed(1, ReasonVerbUnsupported)), StateDegraded, true},
		{"synced and one failure", with(synced, failed(1, ReasonUnreachable)), StateSynced, true},
		{"synced and out of contact", with(synced, failed(3, ReasonUnreachable)), StateDegraded, false},
		{"synced and forbidden since", with(synced, failed(1, ReasonForbidden)), StateDegraded, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.facts.state()
			if got != tt.want {
				t.Errorf("state = %s, want %s", got, tt.want)
			}
			if s := (Status{State: got, Reason: tt.facts.reason}); s.Settled() != tt.settled {
				t.Errorf("%+v: Settled = %v", s, s.Settled())
			}
		})
	}
}

func TestReasonOf(t *testing.T) {
	tooLarge := apierrors.NewTimeoutError("Too large resource version: 9, current: 1", 1)
	tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	tests := []struct {
		name string
		err  error
		want Reason
	}{
		{"success", nil, ReasonNone},
		{"expired", apierrors.NewResourceExpired("too old"), ReasonNone},
		{"410 without a body", serverError(410), ReasonNone},
		{"a version from the future", tooLarge, ReasonNone},
		{"another timeout", apierrors.NewTimeoutError("slow", 1), ReasonRequestFailed},
		{"401", serverError(401), ReasonUnauthorized},
		{"403", serverError(403), ReasonForbidden},
		{"404", serverError(404), ReasonNotFound},
		{"405", serverError(405), ReasonVerbUnsupported},
		{"429", serverError(429), ReasonThrottled},
		{"400", serverError(400), ReasonRequestFailed},
		{"422", serverError(422), ReasonRequestFailed},
		{"500", serverError(500), ReasonRequestFailed},
		{"503", serverError(503), ReasonRequestFailed},
		{"wrapped 403", fmt.Errorf("list: %w", serverError(403)), ReasonForbidden},
		{"wrapped 410", fmt.Errorf("watch: %w", apierrors.NewResourceExpired("too old")), ReasonNone},
		{"connection refused", errRefused, ReasonUnreachable},
		{"no such host", &net.DNSError{Err: "no such host", IsNotFound: true}, ReasonUnreachable},
		{"deadline", context.DeadlineExceeded, ReasonUnreachable},
		{"anything else", errors.New("boom"), ReasonUnreachable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := reasonOf(tt.err); got != tt.want {
				t.Errorf("reasonOf(%v) = %q, want %q", tt.err, got, tt.want)
			}
		})
	}
}

func TestHealthRequests(t *testing.T) {
	clock := time.Unix(1000, 0)
	h := newHealth(widgets, func() time.Time { return clock })
	expect := func(step string, want Status) {
		t.Helper()
		want.GVR, want.Generation = widgets, 1
		if got, _ := h.snapshot(); got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", step, got, want)
		}
	}
	begun := clock
	h.started()
	h.begin("")
	expect("begun", Status{State: StateSyncing, Message: "waiting for the first list", Since: begun})

	_, unchanged := h.snapshot()
	h.request(fmt.Errorf("list: %w", context.Canceled))
	expect("cancelled", Status{State: StateSyncing, Message: "waiting for the first list", Since: begun})
	select {
	case <-unchanged:
		t.Error("a cancelled request woke those who wait for a change")
	default:
	}

	clock = clock.Add(time.Second)
	contact := clock
	h.request(nil)
	h.synced(1)
	expect("synced", Status{State: StateSynced, Since: contact, LastContact: contact})

	clock = clock.Add(time.Second)
	multi := errors.New("two\n\tlines")
	h.request(multi)
	h.request(multi)
	expect("two failures", Status{
		State: StateSynced, Reason: ReasonUnreachable, Message: "two lines", Since: contact, LastError: multi, LastContact: contact,
	})
	clock = clock.Add(time.Second)
	h.request(multi)
	expect("three failures", Status{
		State: StateDegraded, Reason: ReasonUnreachable, Message: "two lines", Since: clock, LastError: multi, LastContact: contact,
	})
	degraded := clock
	clock = clock.Add(time.Second)
	h.request(apierrors.NewResourceExpired("too old"))
	expect("expired", Status{
		State: StateDegraded, Reason: ReasonUnreachable, Message: "two lines", Since: degraded, LastError: multi, LastContact: clock,
	})
	clock = clock.Add(time.Second)
	h.request(nil)
	expect("success", Status{State: StateSynced, Since: clock, LastContact: clock})

	back := clock
	clock = clock.Add(time.Second)
	h.request(errRefused)
	expect("failures are counted anew", Status{
		State: StateSynced, Reason: ReasonUnreachable, Message: errRefused.Error(), Since: back, LastError: errRefused, LastContact: back,
	})
	h.stopped()
	expect("stopped", Status{
		State: StateStopped, Reason: ReasonUnreachable, Message: "stopped", Since: clock, LastError: errRefused, LastContact: back,
	})
}

// TestHealthOfPastGeneration: what a generation that is over reports late does not count for the next one.
func TestHealthOfPastGeneration(t *testing.T) {
	h := newHealth(widgets, time.Now)
	h.started()
	first := h.begin("1")
	h.gone(ReasonNotInstalled)
	h.request(errRefused)
	if s, _ := h.snapshot(); s.State != StateGone || s.LastError != nil {
		t.Errorf("a late request changed the status to %+v", s)
	}
	h.begin("2")
	h.synced(first)
	if s, _ := h.snapshot(); s.State != StateSyncing || s.UID != "2" {
		t.Errorf("a late sync changed the status to %+v", s)
	}
}
