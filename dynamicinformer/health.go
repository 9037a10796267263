package dynamicinformer

import (
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// health keeps the Status of one informer, from what its requests and its life report, and tells waiters
// when it changes. Nothing of it polls: one timer at most wakes it, when time alone changes the state.
type health struct {
	gvr schema.GroupVersionResource
	now func() time.Time
	// news gets what happens, in order. Its methods are called under the lock, and only queue.
	news news

	mu struct {
		sync.Mutex
		status  Status
		facts   facts
		changed chan struct{} // closed and replaced when told changes
		// told is the status that was last told of.
		told Status
		// watchers are told of each new status after news, in the same way.
		watchers []statusWatcher
		// timer calls check at armed; zero when it has no appointment. That may be sooner than needed, never later.
		timer *time.Timer
		armed time.Time
	}
}

// news is told what happens to an informer. Implementations must not block and must not call back.
type news interface {
	// changed tells of a new status, and of the one that was told of before.
	changed(before, after Status)
	// answered tells how the server answered a request; err is nil where it accepted it.
	answered(verb requestVerb, reason Reason, err error)
	// relisted tells that the type has been listed again.
	relisted(s Status, reason RelistReason)
}

func newHealth(gvr schema.GroupVersionResource, now func() time.Time) *health {
	h := &health{gvr: gvr, now: now, news: noNews{}}
	h.mu.status = Status{GVR: gvr, State: StatePending, Message: "not started", Since: now()}
	h.mu.told = h.mu.status
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
		*f = facts{started: true, running: true, exists: f.exists, parts: map[string]*part{}}
		s.Generation++
		s.UID = uid
		generation = s.Generation
	})
	return generation
}

// seen records what a source of types says of the type.
func (h *health) seen(seen sees) {
	h.update(func(f *facts, s *Status) {
		f.exists, s.Terminating = seen.exists, seen.exists && seen.Terminating
	})
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
	h.update(func(f *facts, _ *Status) { *f = facts{started: true, gone: true, reason: reason, exists: f.exists} })
}

// pending records what a started informer waits for.
func (h *health) pending(reason Reason) {
	h.update(func(f *facts, _ *Status) { *f = facts{started: true, reason: reason, exists: f.exists} })
}

// check looks at what time has changed. The timer calls it.
func (h *health) check() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.armed = time.Time{}
	h.deriveLocked(h.now())
}

// update changes the facts and derives the status from them.
func (h *health) update(change func(*facts, *Status)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(&h.mu.facts, &h.mu.status)
	h.deriveLocked(h.now())
}

// deriveLocked brings the status in line with the facts, and tells those whom it concerns.
func (h *health) deriveLocked(now time.Time) {
	f, s := h.mu.facts, &h.mu.status
	if next := f.state(now); next != s.State {
		s.State, s.Since = next, now
	}
	c := complaint{trouble: trouble{reason: f.reason}}
	if f.running {
		c = f.complaint(now)
	}
	s.Reason, s.LastError, s.Message, s.Stale = c.reason, c.err, f.message(c), f.stale(now)
	h.armLocked(f.deadline(now), now)
	if before := h.mu.told; s.differs(before) {
		h.mu.told = *s
		close(h.mu.changed)
		h.mu.changed = make(chan struct{})
		h.news.changed(before, *s)
		for _, w := range h.mu.watchers {
			w.statusChanged(before, *s)
		}
	}
}

// statusWatcher is told of each change of a status, under the lock: it must not block and must not call back.
type statusWatcher interface {
	statusChanged(before, after Status)
}

// follow adds a watcher. join is called with the present status, under the lock, so that the watcher can begin with
// it and misses nothing that comes; an error of join is returned, and the watcher left out.
func (h *health) follow(w statusWatcher, join func(Status) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := join(h.mu.told); err != nil {
		return err
	}
	h.mu.watchers = append(h.mu.watchers, w)
	return nil
}

// unfollow takes a watcher out.
func (h *health) unfollow(w statusWatcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.watchers = slices.DeleteFunc(h.mu.watchers, func(other statusWatcher) bool { return other == w })
}

// armLocked sees to it that check is called at a time; the zero time is never. An appointment that is too soon
// is kept, because each event of a watch-list would move it.
func (h *health) armLocked(at, now time.Time) {
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

// snapshot returns the status and a channel that is closed when it says something else (see differs).
func (h *health) snapshot() (Status, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.status, h.mu.changed
}

// differs reports whether a status says something else than another one, beyond when there was contact.
func (s Status) differs(other Status) bool {
	return s.State != other.State || s.Reason != other.Reason || s.Generation != other.Generation ||
		s.Stale != other.Stale || s.Terminating != other.Terminating
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// noNews is for an informer that nobody follows.
type noNews struct{}

func (noNews) changed(Status, Status)              {}
func (noNews) answered(requestVerb, Reason, error) {}
func (noNews) relisted(Status, RelistReason)       {}
