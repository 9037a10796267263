package dynamicinformer

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// health keeps the Status of one informer, from what its requests and its life report, and tells waiters
// when it changes.
type health struct {
	gvr schema.GroupVersionResource
	now func() time.Time

	mu struct {
		sync.Mutex
		status  Status
		facts   facts
		changed chan struct{} // closed and replaced when state or reason change
	}
}

// facts are what a state is derived from.
type facts struct {
	started, stopped bool
	// running is true while a generation runs; gone between its end and what comes next.
	running, gone bool
	synced        bool
	failures      int
	reason        Reason
}

// state is the state that facts amount to. It is pure: every rule about states is here.
func (f facts) state() State {
	degraded := f.reason.settles() || f.failures >= failuresUntilDegraded
	switch {
	case f.stopped:
		return StateStopped
	case f.gone:
		return StateGone
	case !f.started, !f.running:
		return StatePending
	case degraded:
		return StateDegraded
	case f.synced:
		return StateSynced
	default:
		return StateSyncing
	}
}

func newHealth(gvr schema.GroupVersionResource, now func() time.Time) *health {
	h := &health{gvr: gvr, now: now}
	h.mu.status = Status{GVR: gvr, State: StatePending, Message: "not started", Since: now()}
	h.mu.changed = make(chan struct{})
	return h
}

func (h *health) started() { h.update(func(f *facts, _ *Status) { f.started = true }) }
func (h *health) stopped() {
	h.update(func(f *facts, _ *Status) { f.running, f.stopped = false, true })
}

// begin records that a generation begins to follow the type whose CRD has this UID, and numbers it.
func (h *health) begin(uid types.UID) (generation int) {
	h.update(func(f *facts, s *Status) {
		*f = facts{started: true, running: true}
		s.Generation++
		s.UID, s.LastError = uid, nil
		generation = s.Generation
	})
	return generation
}

// synced records that a generation has stored its first list.
func (h *health) synced(generation int) {
	h.update(func(f *facts, s *Status) {
		if s.Generation == generation {
			f.synced = true
		}
	})
}

// gone records that the generation has ended with its type.
func (h *health) gone(reason Reason) {
	h.update(func(f *facts, s *Status) {
		*f = facts{started: true, gone: true, reason: reason}
		s.LastError = nil
	})
}

// pending records what a started informer waits for.
func (h *health) pending(reason Reason) {
	h.update(func(f *facts, s *Status) {
		*f = facts{started: true, reason: reason}
		s.LastError = nil
	})
}

// request records the outcome of a list or watch request; err is nil when the server accepted it.
func (h *health) request(err error) {
	if errors.Is(err, context.Canceled) {
		return // ours: the informer is being stopped
	}
	h.update(func(f *facts, s *Status) {
		switch {
		case !f.running: // of a generation that has ended since
		case err == nil:
			f.failures, f.reason = 0, ReasonNone
			s.LastError, s.LastContact = nil, h.now()
		case reasonOf(err) == ReasonNone:
			s.LastContact = h.now() // an answer that is part of the protocol
		default:
			f.failures++
			f.reason, s.LastError = reasonOf(err), err
		}
	})
}

// update changes the facts and derives the status from them.
func (h *health) update(change func(*facts, *Status)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.mu.status
	f, s := &h.mu.facts, &h.mu.status
	change(f, s)
	if next := f.state(); next != s.State {
		s.State, s.Since = next, h.now()
	}
	s.Reason = f.reason
	s.Message = f.message(s.LastError)
	if s.State != before.State || s.Reason != before.Reason || s.Generation != before.Generation {
		close(h.mu.changed)
		h.mu.changed = make(chan struct{})
	}
}

// message says in one line what the facts amount to.
func (f facts) message(lastError error) string {
	switch {
	case f.stopped:
		return "stopped"
	case !f.started:
		return "not started"
	case lastError != nil:
		return oneLine(lastError.Error())
	case !f.running:
		return f.reason.explain()
	case f.synced:
		return ""
	default:
		return "waiting for the first list"
	}
}

// explain says what a reason that no error comes with means, for a person.
func (r Reason) explain() string {
	switch r {
	case ReasonTypesUnknown:
		return "waiting to learn which types the server has"
	case ReasonNotInstalled:
		return "the server has no such type"
	case ReasonNotEstablished:
		return "the type's CustomResourceDefinition is not established yet"
	case ReasonVersionNotServed:
		return "the server does not serve this version of the type"
	case ReasonScopeConflict:
		return "the type is cluster-scoped and cannot be read in one namespace"
	case ReasonVerbUnsupported:
		return "the type cannot be listed and watched"
	case ReasonReplaced:
		return "the type's CustomResourceDefinition was replaced by another one"
	}
	return ""
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// snapshot returns the status and a channel that is closed when its state or reason changes.
func (h *health) snapshot() (Status, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.status, h.mu.changed
}

// reasonOf classifies the error of a list or watch request. Answers that are part of the protocol and
// lead to a relist (410, a resource version from the future) are no failures.
func reasonOf(err error) Reason {
	switch {
	case err == nil,
		apierrors.IsResourceExpired(err), apierrors.IsGone(err),
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
		return ReasonNone
	case apierrors.IsForbidden(err):
		return ReasonForbidden
	case apierrors.IsUnauthorized(err):
		return ReasonUnauthorized
	case apierrors.IsNotFound(err):
		return ReasonNotFound
	case apierrors.IsMethodNotSupported(err):
		return ReasonVerbUnsupported
	case apierrors.IsTooManyRequests(err):
		return ReasonThrottled
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest {
		return ReasonRequestFailed
	}
	return ReasonUnreachable
}
