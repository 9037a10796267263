// Package health keeps what is known of informers: from what their requests and their lives report, it
// derives states and the conditions of a factory, and tells waiters and listeners.
package health

import (
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/requests"
)

// Health keeps the Status of one informer, from what its requests and its life report, and tells waiters
// when it changes. Nothing of it polls: one timer at most wakes it, when time alone changes the state.
type Health struct {
	gvr schema.GroupVersionResource
	now func() time.Time
	// news gets what happens, in order. Its methods are called under the lock, and only queue.
	news news

	mu struct {
		sync.Mutex
		status  Status
		facts   facts
		counts  counts
		changed chan struct{} // closed and replaced when told changes
		// told is the status that was last told of, which never changes and is shared with who was told;
		// stood the standing.
		told  *Status
		stood standing
		// required says that somebody cannot do without the type.
		required bool
		// watchers are told of each new status after news, in the same way.
		watchers []*watcher
		// timer calls check at armed; zero when it has no appointment. That may be sooner than needed, never
		// later.
		timer *time.Timer
		armed time.Time
	}
}

// news is told what happens to an informer. Implementations must not block and must not call back.
type news interface {
	// changed tells of a new status, and of the one that was told of before.
	changed(before, after *Status)
	// stands tells what the requests that run now say about the factory.
	stands(s standing)
	// answered tells how the server answered a request; err is nil where it accepted it.
	answered(verb requests.Verb, reason requests.Reason, err error)
	// relisted tells that the type has been listed again.
	relisted(s Status, reason requests.RelistReason)
	// requires tells whether somebody cannot do without the type.
	requires(required bool)
}

// New returns the health of an informer of gvr that has not been started. view describes what the informer
// shows.
func New(gvr schema.GroupVersionResource, view string, now func() time.Time) *Health {
	h := &Health{gvr: gvr, now: now, news: noNews{}}
	h.mu.status = Status{GVR: gvr, View: view, State: StatePending, Message: "not started", Since: now()}
	h.tellLocked()
	h.mu.changed = make(chan struct{})
	return h
}

// Started records that the informer has been started.
func (h *Health) Started() { h.update(func(f *facts, _ *Status) { f.started = true }) }

// Stopped records that it has ended for good, and why, for a person.
func (h *Health) Stopped(why string) {
	h.update(func(f *facts, _ *Status) { f.running, f.stopped, f.end = false, true, why })
}

// Require records whether somebody cannot do without the type, which is part of the factory's readiness. Who
// waits for the status is woken.
func (h *Health) Require(required bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.required == required {
		return
	}
	h.mu.required = required
	h.wakeLocked()
	h.news.requires(required)
}

// Required returns what Require recorded last.
func (h *Health) Required() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.required
}

// Begin records that a generation begins to follow a version of the type whose CRD has this UID, and numbers
// it.
func (h *Health) Begin(version string, uid types.UID) (generation int) {
	h.update(func(f *facts, s *Status) {
		*f = facts{started: true, running: true, exists: f.exists}
		s.Generation++
		s.Version, s.UID = version, uid
		generation = s.Generation
	})
	return generation
}

// Seen records what a source of types says of the type: that it exists, and that its CRD is being deleted.
func (h *Health) Seen(exists, terminating bool) {
	h.update(func(f *facts, s *Status) {
		f.exists, s.Terminating = exists, exists && terminating
	})
}

// Consists records the partitions that the type is read in, and forgets all others. Without any, there is
// nothing to read. A reason says why there may be more partitions: which of these namespaces exist is not
// known.
func (h *Health) Consists(parts []string, namespaces string, reason requests.Reason, err error) {
	known := make(map[string]bool, len(parts)+1)
	for _, name := range parts {
		known[name] = true
	}
	if reason != requests.ReasonNone {
		known[namespaces] = true
	}
	h.update(func(f *facts, _ *Status) {
		if !f.running {
			return
		}
		f.parts.keep(known)
		f.empty = len(known) == 0
		if reason != requests.ReasonNone {
			f.parts.miss(namespaces, trouble{reason: reason, since: h.now(), err: err})
		}
	})
}

// Synced records that a generation has stored its first list.
func (h *Health) Synced(generation int) {
	h.update(func(f *facts, s *Status) {
		if s.Generation == generation {
			f.synced = true
		}
	})
}

// Resuming records whether the cache shows what an earlier process kept, as long as a generation has not
// stored its first list.
func (h *Health) Resuming(generation int, resuming bool) {
	h.update(func(f *facts, s *Status) {
		if s.Generation == generation {
			f.resuming = resuming
		}
	})
}

// Sharded records what is known of a shard, as now tells, which is called under the lock and must not call
// back.
func (h *Health) Sharded(now func() status.Shard) {
	h.update(func(_ *facts, s *Status) {
		if next := now(); !equalShards(s.Shard, &next) {
			s.Shard = &next
		}
	})
}

// Gone records that the generation has ended with its type.
func (h *Health) Gone(reason requests.Reason) {
	h.update(func(f *facts, _ *Status) {
		*f = facts{started: true, gone: true, reason: reason,
			exists: f.exists}
	})
}

// Pending records why a started informer waits; cause may be nil.
func (h *Health) Pending(reason requests.Reason, cause error) {
	h.update(func(f *facts, _ *Status) {
		*f = facts{started: true, reason: reason, err: cause,
			exists: f.exists}
	})
}

// check looks at what time has changed. The timer calls it.
func (h *Health) check() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.armed = time.Time{}
	h.deriveLocked(h.now())
}

// update changes the facts and derives the status from them.
func (h *Health) update(change func(*facts, *Status)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(&h.mu.facts, &h.mu.status)
	h.deriveLocked(h.now())
}

// deriveLocked brings the status in line with the facts, and tells those whom it concerns.
func (h *Health) deriveLocked(now time.Time) {
	f, s := h.mu.facts, &h.mu.status
	if next := f.state(now); next != s.State {
		s.State, s.Since = next, now
	}
	c := complaint{trouble: trouble{reason: f.reason, err: f.err}}
	if f.running {
		c = f.complaint(now)
	}
	s.Reason, s.LastError, s.Message, s.Stale = c.reason, c.err, f.message(c), f.stale(now)
	s.Resuming = f.shows()
	h.armLocked(f.deadline(now), now)
	if stands := f.standing(); stands.refused.says(h.mu.stood.refused) ||
		stands.unreached.says(h.mu.stood.unreached) {
		h.mu.stood = stands
		h.news.stands(stands)
	}
	if before := h.mu.told; changed(s, before) {
		h.tellLocked()
		h.wakeLocked()
		h.news.changed(before, h.mu.told)
		for _, w := range h.mu.watchers {
			w.changed(*before, *h.mu.told)
		}
	}
}

// tellLocked makes the present status the one that is told of.
func (h *Health) tellLocked() {
	told := h.mu.status
	h.mu.told = &told
}

// lastTold is the status that was last told of, which never changes.
func (h *Health) lastTold() *Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.told
}

// wakeLocked wakes those who wait for another status.
func (h *Health) wakeLocked() {
	close(h.mu.changed)
	h.mu.changed = make(chan struct{})
}

// watcher is told of each change of a status.
type watcher struct{ changed func(before, after Status) }

// Follow has changed called with each change of the status until unfollow is called. That happens under the
// lock: it must not block and must not call back. join is called with the present status, under the lock as
// well, so that who follows can begin with it and misses nothing that comes; an error of join is returned,
// and nothing is followed.
func (h *Health) Follow(changed func(before, after Status), join func(Status) error) (unfollow func(),
	err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := join(*h.mu.told); err != nil {
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

// armLocked has check called at a time; the zero time is never. An appointment that is too soon
// is kept, because each event of a watch-list would move it.
func (h *Health) armLocked(at, now time.Time) {
	switch {
	case h.mu.facts.stopped && h.mu.timer != nil:
		h.mu.timer.Stop()
	case at.IsZero(), !h.mu.armed.IsZero() && !h.mu.armed.After(at):
	case h.mu.timer == nil:
		h.mu.armed, h.mu.timer = at, time.AfterFunc(at.Sub(now), h.check)
	default:
		h.mu.armed = at
		h.mu.timer.Reset(at.Sub(now))
	}
}

// Snapshot returns the status and a channel that is closed when it says something else (see changed), or the
// type begins or ceases to be required.
func (h *Health) Snapshot() (Status, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.status, h.mu.changed
}

func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// noNews is for an informer that nobody follows.
type noNews struct{}

func (noNews) stands(standing)                                {}
func (noNews) changed(*Status, *Status)                       {}
func (noNews) answered(requests.Verb, requests.Reason, error) {}
func (noNews) relisted(Status, requests.RelistReason)         {}
func (noNews) requires(bool)                                  {}

// Armed returns when the timer wakes the health next; zero: it does not.
func (h *Health) Armed() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.armed
}
