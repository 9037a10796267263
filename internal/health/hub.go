package health

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/queue"
	"github.com/crdcache/crdcache/internal/requests"
	"github.com/crdcache/crdcache/internal/typename"
)

// ErrShutdown is returned for what a factory is asked after Shutdown.
var ErrShutdown = errors.New("dynamicinformer: the factory has been shut down")

// Hub passes on what the informers of a factory report: to listeners, and into the factory's conditions. One
// lock orders everything, so that all listeners see one history; under it things are only queued.
type Hub struct {
	now func() time.Time

	mu struct {
		sync.Mutex
		shutdown  bool
		listeners []*ListenerHandle
		// members are the informers that have not been stopped, in the order of their types.
		members []*member
		// sums are of the members: a change of one among many is not to cost a look at all of them.
		sums sums
		// typesKnown is set once a source of types has told all there are, or when there is none.
		typesKnown bool
		// reached is set once a server has answered anything.
		reached    bool
		conditions map[ConditionType]Condition
		// expected are the types that the factory is not ready without, also while there is no informer of
		// them.
		expected []schema.GroupVersionResource
	}
}

// member is what a hub knows of one informer. It is the news of the informer's health.
type member struct {
	hub *Hub

	// The rest is guarded by the hub's lock.

	// status is the one that was last told of.
	status *Status
	// required says that the factory is not ready without the type.
	required bool
	standing standing
	// counted says that it is one of the hub's members, and in their sums.
	counted bool
}

// sums is how many informers conditions have something to say of.
type sums struct {
	refused, unreached, lacking int
	types                       map[schema.GroupVersionResource]int
}

var _ news = (*member)(nil)

// NewHub returns a hub; typesKnown says that no source of types has to be waited for.
func NewHub(typesKnown bool, now func() time.Time) *Hub {
	b := &Hub{now: now}
	b.mu.typesKnown = typesKnown
	b.mu.conditions = map[ConditionType]Condition{}
	b.mu.sums.types = map[schema.GroupVersionResource]int{}
	b.reviewLocked()
	return b
}

// Expect says without which types the factory is not ready, also while there is no informer of them.
func (b *Hub) Expect(types ...schema.GroupVersionResource) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.expected = types
	b.reviewLocked()
}

// Join lets the hub know of an informer, through its health, before that has anything to report.
func (b *Hub) Join(h *Health) {
	m := &member{hub: b, required: h.Required(), status: h.lastTold()}
	h.news = m
	b.mu.Lock()
	defer b.mu.Unlock()
	at, _ := slices.BinarySearchFunc(b.mu.members, m, compareMembers)
	b.mu.members = slices.Insert(b.mu.members, at, m)
	m.counted = true
	m.addLocked(1)
	b.tellLocked(func(l *Listener) []func() { return stateChanged(l, m.unknown(), *m.status) })
	b.reviewLocked()
}

// Add adds a listener and tells it the present state.
func (b *Hub) Add(listener Listener) (*ListenerHandle, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.shutdown {
		return nil, ErrShutdown
	}
	l := &ListenerHandle{hub: b, listener: listener, queue: queue.NewCalls()}
	for _, m := range b.mu.members {
		l.queue.Push(stateChanged(&l.listener, Status{GVR: m.status.GVR}, *m.status)...)
	}
	for _, c := range b.conditionsLocked() {
		l.queue.Push(conditionChanged(&l.listener, Condition{Type: c.Type}, c)...)
	}
	b.mu.listeners = append(b.mu.listeners, l)
	return l, nil
}

func (b *Hub) Remove(l *ListenerHandle) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.listeners = slices.DeleteFunc(b.mu.listeners, func(other *ListenerHandle) bool { return other == l })
}

// Shut admits no more listeners, and waits until those that are there have been told everything, or ctx ends.
func (b *Hub) Shut(ctx context.Context) error {
	b.mu.Lock()
	b.mu.shutdown = true
	listeners := slices.Clone(b.mu.listeners)
	b.mu.Unlock()
	var failure error
	for _, l := range listeners {
		failure = cmp.Or(failure, l.drain(ctx))
	}
	return failure
}

// LearntTypes records that the source of types has told all there are.
func (b *Hub) LearntTypes() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.typesKnown = true
	b.reviewLocked()
}

// unknown is the status before anything was told.
func (m *member) unknown() Status { return Status{GVR: m.status.GVR, View: m.status.View} }

// changed implements news.
func (m *member) changed(before, after *Status) {
	b := m.hub
	b.mu.Lock()
	defer b.mu.Unlock()
	m.changeLocked(func() { m.status = after })
	b.tellLocked(func(l *Listener) []func() { return stateChanged(l, *before, *after) })
	if after.State == StateStopped {
		m.addLocked(-1)
		m.counted = false
		b.mu.members = slices.DeleteFunc(b.mu.members, func(other *member) bool { return other == m })
	}
	b.reviewLocked()
}

// stands implements news.
func (m *member) stands(s standing) {
	b := m.hub
	b.mu.Lock()
	defer b.mu.Unlock()
	m.changeLocked(func() { m.standing = s })
	b.reviewLocked()
}

// answered implements news.
func (m *member) answered(verb requests.Verb, reason requests.Reason, err error) {
	b := m.hub
	b.mu.Lock()
	defer b.mu.Unlock()
	if reason != requests.ReasonNone {
		f := RequestFailure{GVR: m.status.GVR, View: m.status.View, Verb: verb.String(), Reason: reason,
			Err: err, Time: b.now()}
		b.tellLocked(func(l *Listener) []func() { return requestFailed(l, f) })
	}
	if reason != requests.ReasonUnreachable && !b.mu.reached {
		b.mu.reached = true
		b.reviewLocked()
	}
}

// relisted implements news.
func (m *member) relisted(s Status, reason requests.RelistReason) {
	b := m.hub
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tellLocked(func(l *Listener) []func() { return relisted(l, GenerationOf(s), reason) })
}

// requires implements news.
func (m *member) requires(required bool) {
	b := m.hub
	b.mu.Lock()
	defer b.mu.Unlock()
	m.changeLocked(func() { m.required = required })
	b.reviewLocked()
}

// changeLocked changes what is known of an informer, and the sums with it.
func (m *member) changeLocked(change func()) {
	m.addLocked(-1)
	change()
	m.addLocked(1)
}

// addLocked adds an informer to the sums so many times.
func (m *member) addLocked(times int) {
	if !m.counted {
		return
	}
	sums := &m.hub.mu.sums
	if m.standing.refused.err != nil {
		sums.refused += times
	}
	if m.standing.unreached.err != nil {
		sums.unreached += times
	}
	if m.lacks() {
		sums.lacking += times
	}
	gvr := m.status.GVR
	if sums.types[gvr] += times; sums.types[gvr] == 0 {
		delete(sums.types, gvr)
	}
}

// lacks reports whether the factory is not ready for want of the type.
func (m *member) lacks() bool { return m.required && m.status.State != StateSynced }

// tellLocked queues calls for every listener.
func (b *Hub) tellLocked(calls func(*Listener) []func()) {
	for _, l := range b.mu.listeners {
		l.queue.Push(calls(&l.listener)...)
	}
}

// compareMembers orders informers by their types, and those of one type by what they follow of it.
func compareMembers(x, y *member) int {
	return cmp.Or(typename.Compare(x.status.GVR, y.status.GVR), cmp.Compare(x.status.View, y.status.View))
}
