package health

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/queue"
	"github.com/crdcache/crdcache/internal/requests"
)

// ErrShutdown is returned by methods of a factory after Shutdown.
var ErrShutdown = errors.New("dynamicinformer: the factory has been shut down")

// Aggregator aggregates the status of a factory's informers: it notifies listeners and maintains the
// factory's conditions. One lock orders all events, so that all listeners receive them in the same order.
// Listeners are called without the lock.
type Aggregator struct {
	now func() time.Time

	mu struct {
		sync.Mutex
		shutdown  bool
		listeners []*ListenerHandle
		// members are the informers that have not been stopped, sorted by type.
		members []*member
		// totals of the members, so that a change of one member does not visit all.
		totals totals
		// typesKnown is set once the source of types has reported all types, or if there is no source.
		typesKnown bool
		// typesProblem is the reason why it cannot report all types.
		typesProblem  problem
		serverReached bool
		conditions    map[ConditionType]Condition
		// expected are the required types, also without an informer.
		expected []schema.GroupVersionResource
	}
}

// member is the aggregator's record of one informer. It receives the events of its Health, unless it is nil.
type member struct {
	aggregator *Aggregator

	// The following fields are guarded by the aggregator's lock.

	// status is the last published status.
	status *Status
	// required states that the factory is not ready without the type.
	required bool
	impact   factoryImpact
	// inTotals states that the informer is one of the aggregator's members and is included in the totals.
	inTotals bool
}

// totals counts the informers that affect conditions.
type totals struct {
	rejected, unreachable, notReady int
	types                           map[schema.GroupVersionResource]int
}

// NewAggregator returns an Aggregator. typesKnown is true if it need not wait for a source of types.
func NewAggregator(typesKnown bool, now func() time.Time) *Aggregator {
	b := &Aggregator{now: now}
	b.mu.typesKnown = typesKnown
	b.mu.conditions = map[ConditionType]Condition{}
	b.mu.totals.types = map[schema.GroupVersionResource]int{}
	b.updateConditionsLocked()
	return b
}

// Expect sets the types that are required, also without an informer.
func (b *Aggregator) Expect(types ...schema.GroupVersionResource) {
	b.update(func() { b.mu.expected = types })
}

// Join adds the informer of h. It must be called before h receives any report.
func (b *Aggregator) Join(h *Health) {
	h.mu.Lock()
	m := &member{aggregator: b, required: h.mu.required, status: h.mu.published}
	h.mu.Unlock()
	h.member = m
	b.mu.Lock()
	defer b.mu.Unlock()
	at, _ := slices.BinarySearchFunc(b.mu.members, m, func(x, y *member) int {
		return cmp.Or(naming.CompareTypes(x.status.GVR, y.status.GVR),
			cmp.Compare(x.status.Options, y.status.Options))
	})
	b.mu.members = slices.Insert(b.mu.members, at, m)
	m.inTotals = true
	m.addLocked(1)
	unknown := Status{GVR: m.status.GVR, Options: m.status.Options}
	b.notifyLocked(func(l *Listener) []func() { return stateChanged(l, unknown, *m.status) })
	b.updateConditionsLocked()
}

// Add adds a listener and sends it the current state.
func (b *Aggregator) Add(listener Listener) (*ListenerHandle, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.shutdown {
		return nil, ErrShutdown
	}
	l := &ListenerHandle{aggregator: b, listener: listener, queue: queue.NewCalls()}
	for _, m := range b.mu.members {
		l.queue.Push(stateChanged(&l.listener, Status{GVR: m.status.GVR}, *m.status)...)
	}
	for _, c := range b.conditionsLocked() {
		l.queue.Push(bindCall2(l.listener.ConditionChanged, Condition{Type: c.Type}, c)...)
	}
	b.mu.listeners = append(b.mu.listeners, l)
	return l, nil
}

// Drain rejects further listeners, and waits until the existing ones have received all events, or ctx ends.
func (b *Aggregator) Drain(ctx context.Context) error {
	b.mu.Lock()
	b.mu.shutdown = true
	listeners := slices.Clone(b.mu.listeners)
	b.mu.Unlock()
	var failure error
	for _, l := range listeners {
		failure = cmp.Or(failure, l.queue.Drain(ctx))
	}
	return failure
}

// Close removes all listeners and drops their pending events.
func (b *Aggregator) Close() {
	b.mu.Lock()
	listeners := slices.Clone(b.mu.listeners)
	b.mu.Unlock()
	for _, l := range listeners {
		l.Close()
	}
}

// SetTypesKnown records that the source of types has reported all types.
func (b *Aggregator) SetTypesKnown() { b.update(func() { b.mu.typesKnown = true }) }

// SetTypesError records the reason why the source of types cannot report all types, or nil.
func (b *Aggregator) SetTypesError(err error) {
	b.update(func() { b.mu.typesProblem = problem{reason: requests.ReasonOf(err), err: err} })
}

// update calls change under the lock, and evaluates the conditions.
func (b *Aggregator) update(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
	b.updateConditionsLocked()
}

// statusChanged is called with the last and the new status.
func (m *member) statusChanged(before, after *Status) {
	m.change(func(b *Aggregator) {
		m.status = after
		b.notifyLocked(func(l *Listener) []func() { return stateChanged(l, *before, *after) })
		if after.State == status.Stopped {
			m.inTotals = false
			b.mu.members = slices.DeleteFunc(b.mu.members, func(other *member) bool { return other == m })
		}
	})
}

// impactChanged is called with the effect of the current requests on the factory's conditions.
func (m *member) impactChanged(i factoryImpact) { m.change(func(*Aggregator) { m.impact = i }) }

// requiredChanged is called when the type becomes required, or is no longer required.
func (m *member) requiredChanged(required bool) {
	m.change(func(*Aggregator) { m.required = required })
}

// requestEnded is called with the outcome of a request. err is nil if the server accepted the request.
func (m *member) requestEnded(verb requests.Verb, reason status.Reason, err error) {
	m.update(func(b *Aggregator) {
		if reason != status.ReasonNone {
			f := RequestFailure{GVR: m.status.GVR, Options: m.status.Options, Verb: verb.String(),
				Reason: reason, Err: err, Time: b.now()}
			b.notifyLocked(func(l *Listener) []func() { return bindCall(l.RequestFailed, f) })
		}
		if reason != status.ReasonUnreachable && !b.mu.serverReached {
			b.mu.serverReached = true
			b.updateConditionsLocked()
		}
	})
}

// relisted is called after a relist.
func (m *member) relisted(s Status, reason status.RelistReason) {
	m.update(func(b *Aggregator) {
		b.notifyLocked(func(l *Listener) []func() { return bindCall2(l.Relisted, IncarnationOf(s), reason) })
	})
}

// update calls change under the aggregator's lock.
func (m *member) update(change func(*Aggregator)) {
	if m == nil {
		return
	}
	m.aggregator.mu.Lock()
	defer m.aggregator.mu.Unlock()
	change(m.aggregator)
}

// change changes the record of an informer, and updates the totals and the conditions.
func (m *member) change(change func(*Aggregator)) {
	m.update(func(b *Aggregator) {
		m.addLocked(-1)
		change(b)
		m.addLocked(1)
		b.updateConditionsLocked()
	})
}

// addLocked adds an informer to the totals, or with sign = -1 removes it.
func (m *member) addLocked(sign int) {
	if !m.inTotals {
		return
	}
	totals := &m.aggregator.mu.totals
	if m.impact.rejected.err != nil {
		totals.rejected += sign
	}
	if m.impact.unreachable.err != nil {
		totals.unreachable += sign
	}
	if m.blocksReady() {
		totals.notReady += sign
	}
	gvr := m.status.GVR
	if totals.types[gvr] += sign; totals.types[gvr] == 0 {
		delete(totals.types, gvr)
	}
}

// blocksReady reports whether the type prevents the factory from being ready.
func (m *member) blocksReady() bool { return m.required && m.status.State != status.Synced }

func (b *Aggregator) notifyLocked(calls func(*Listener) []func()) {
	for _, l := range b.mu.listeners {
		l.queue.Push(calls(&l.listener)...)
	}
}
