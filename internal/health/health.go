// Package health derives the states of informers and the conditions of a factory from the outcomes of
// requests and the life cycle of informers. It notifies waiters and listeners of changes.
package health

import (
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// Health derives the Status of one informer from its requests and life cycle, and notifies waiters of
// changes. It does not poll: a single timer fires when the state changes with time alone.
type Health struct {
	gvr schema.GroupVersionResource
	now func() time.Time
	// member receives events in order, under the lock. It is nil for an informer without a factory.
	member *member

	mu struct {
		sync.Mutex
		status       Status
		observations observations
		counts       counts
		changed      chan struct{} // closed and replaced when published changes
		// published is the status of the last notification. It is immutable and shared with its receivers.
		// impact is the last impact sent to member.
		published *Status
		impact    factoryImpact
		// required states that the factory is not ready without the type.
		required bool
		// watchers are called with each new status after member, in the same way.
		watchers []*watcher
		// timer calls check at timerAt, which is zero if the timer is not set. It may fire early, not late.
		timer   *time.Timer
		timerAt time.Time
	}
}

// New returns the Health of an informer of gvr before its start. options describes the informer's options.
func New(gvr schema.GroupVersionResource, options string, now func() time.Time) *Health {
	h := &Health{gvr: gvr, now: now}
	h.mu.status = Status{GVR: gvr, Options: options, State: status.Pending, Message: "not started", Since: now()}
	h.publishLocked()
	h.mu.changed = make(chan struct{})
	return h
}

// Started records that the informer has been started.
func (h *Health) Started() { h.update(func(f *observations, _ *Status) { f.started = true }) }

// Stopped records that the informer has ended permanently. reason is a message.
func (h *Health) Stopped(reason string) {
	h.update(func(f *observations, _ *Status) { f.running, f.stopped, f.stopReason = false, true, reason })
}

// Require records whether the factory's readiness depends on the type. It wakes waiters.
func (h *Health) Require(required bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.required == required {
		return
	}
	h.mu.required = required
	h.wakeLocked()
	h.member.requiredChanged(required)
}

// Required returns the last value passed to Require.
func (h *Health) Required() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.required
}

// Begin records the start of an incarnation for a version and the CRD's UID, and returns its number.
func (h *Health) Begin(version string, uid types.UID) (incarnation int) {
	h.update(func(f *observations, s *Status) {
		*f = observations{started: true, running: true, exists: f.exists, suspended: f.suspended}
		s.Incarnation++
		s.Version, s.UID = version, uid
		incarnation = s.Incarnation
	})
	return incarnation
}

// SetServed records whether the source of types reports that the type exists, and that it is terminating.
func (h *Health) SetServed(exists, terminating bool) {
	h.update(func(f *observations, s *Status) {
		f.exists, s.Terminating = exists, exists && terminating
	})
}

// SetPartitions replaces the partitions in which the type is read. If there are none, no objects are
// selected. A reason states that the list of namespaces is incomplete; namespaces then names a partition for
// the unknown namespaces.
func (h *Health) SetPartitions(partitions []string, namespaces string, reason status.Reason, err error) {
	names := make(map[string]bool, len(partitions)+1)
	for _, name := range partitions {
		names[name] = true
	}
	if reason != status.ReasonNone {
		names[namespaces] = true
	}
	h.update(func(f *observations, _ *Status) {
		if !f.running {
			return
		}
		f.partitions.retainOnly(names)
		f.selectsNothing = len(names) == 0
		if reason != status.ReasonNone {
			f.recordUnknownNamespaces(namespaces, reason, err, h.now())
		}
	})
}

// Synced records that an incarnation has stored its first list.
func (h *Health) Synced(incarnation int) {
	h.update(func(f *observations, s *Status) {
		if s.Incarnation == incarnation {
			f.synced, f.suspended = true, false
		}
	})
}

// SetResuming records whether the cache serves restored objects before the first list of an incarnation.
func (h *Health) SetResuming(incarnation int, resuming bool) {
	h.update(func(f *observations, s *Status) {
		if s.Incarnation == incarnation {
			f.resuming = resuming
		}
	})
}

// UpdateShard updates Status.Shard. now, nil without one, is called under the lock and must not call back.
func (h *Health) UpdateShard(now func() status.Shard) {
	h.update(func(_ *observations, s *Status) {
		if now == nil {
			s.Shard = nil
			return
		}
		if next := now(); !equalShards(s.Shard, &next) {
			s.Shard = &next
		}
	})
}

// UpdateSelectors updates Status.UnlistedSelectors. now is called like that of UpdateShard.
func (h *Health) UpdateSelectors(now func() int) {
	h.update(func(_ *observations, s *Status) { s.UnlistedSelectors = now() })
}

// SetGone records that the objects of the incarnations so far are deleted, with the type.
func (h *Health) SetGone(reason status.Reason) {
	h.update(func(f *observations, _ *Status) {
		*f = observations{started: true, typeGone: true, reason: reason, exists: f.exists}
	})
}

// Pending records why a started informer waits; cause can be nil. Objects of an ended incarnation may exist.
func (h *Health) Pending(reason status.Reason, cause error) {
	h.update(func(f *observations, _ *Status) {
		*f = observations{started: true, reason: reason, err: cause,
			exists: f.exists, suspended: f.suspended || f.running}
	})
}

// check derives the status again. It is called by the timer.
func (h *Health) check() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.timerAt = time.Time{}
	h.deriveLocked(h.now())
}

// update changes the observations and derives the status from them.
func (h *Health) update(change func(*observations, *Status)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(&h.mu.observations, &h.mu.status)
	h.deriveLocked(h.now())
}

// deriveLocked derives the status from the observations, and notifies of changes.
func (h *Health) deriveLocked(now time.Time) {
	f, s := h.mu.observations, &h.mu.status
	if next := f.state(now); next != s.State {
		s.State, s.Since = next, now
	}
	c := requestProblem{problem: problem{reason: f.reason, err: f.err}}
	if f.running {
		c = f.worstRequestProblem(now)
	}
	s.Reason, s.LastError, s.Message, s.Stale = c.reason, c.err, f.message(c), f.stale(now)
	s.Resuming, s.Suspended = f.servesRestored(), f.suspended && !f.stopped
	h.armLocked(f.deadline(now), now)
	if impact := f.impact(); impact.rejected.differs(h.mu.impact.rejected) ||
		impact.unreachable.differs(h.mu.impact.unreachable) {
		h.mu.impact = impact
		h.member.impactChanged(impact)
	}
	if before := h.mu.published; statusDiffers(s, before) {
		h.publishLocked()
		h.wakeLocked()
		h.member.statusChanged(before, h.mu.published)
		for _, w := range h.mu.watchers {
			w.changed(*before, *h.mu.published)
		}
	}
}

// publishLocked makes the current status visible to readers without the lock.
func (h *Health) publishLocked() {
	published := h.mu.status
	h.mu.published = &published
}

// wakeLocked wakes the waiters for a change of the status.
func (h *Health) wakeLocked() {
	close(h.mu.changed)
	h.mu.changed = make(chan struct{})
}

// watcher is a callback of Follow.
type watcher struct{ changed func(before, after Status) }

// Follow calls changed with each change of the status until unfollow is called. It calls join with the
// current status before, so that the caller misses no change. Both are called under the lock and must neither
// block nor call back. If join returns an error, Follow returns it and calls nothing else.
func (h *Health) Follow(changed func(before, after Status), join func(Status) error) (unfollow func(),
	err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := join(*h.mu.published); err != nil {
		return nil, err
	}
	w := &watcher{changed}
	h.mu.watchers = append(h.mu.watchers, w)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.mu.watchers = slices.DeleteFunc(h.mu.watchers, func(other *watcher) bool { return other == w })
	}, nil
}

// armLocked sets the timer to call check at a time; the zero time means never. It never moves the timer to a
// later time, because each event of a watch-list would do so.
func (h *Health) armLocked(at, now time.Time) {
	switch {
	case h.mu.observations.stopped && h.mu.timer != nil:
		h.mu.timer.Stop()
	case at.IsZero(), !h.mu.timerAt.IsZero() && !h.mu.timerAt.After(at):
	case h.mu.timer == nil:
		h.mu.timerAt, h.mu.timer = at, time.AfterFunc(at.Sub(now), h.check)
	default:
		h.mu.timerAt = at
		h.mu.timer.Reset(at.Sub(now))
	}
}

// Snapshot returns the status and a channel that is closed when the status changes (see changed), or the type
// becomes required or no longer required.
func (h *Health) Snapshot() (Status, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.status, h.mu.changed
}

func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
