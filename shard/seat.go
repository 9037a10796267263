package shard

import (
	"context"
	"errors"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// announceDelay is how long a shard that has been acquired waits for others, so that they are announced
// together: whoever lists the objects of several shards at once asks the server less often.
const announceDelay = 250 * time.Millisecond

// seat is the place of a shard in this replica, from the attempt to acquire it to its release.
type seat struct {
	tenure *Tenure
	lock   *lock
	// over is closed when the elector has ended.
	over chan struct{}
	// The member's lock guards the rest.

	acquired  time.Time // zero: not yet
	announced bool
	draining  bool
	gone      bool // drained and released
}

// take tries to acquire a shard.
func (m *Member) take(ctx context.Context, shard int) {
	name := m.options.leaseOf(shard)
	s := &seat{tenure: newTenure(context.WithoutCancel(ctx), shard), over: make(chan struct{})}
	s.lock = &lock{
		LeaseLock: m.leaseLock(name, map[string]string{labelShard: name[len(m.options.Name)+1:]}),
		tenure:    s.tenure, deadline: m.options.RenewDeadline, end: s.tenure.end,
		expired:  func(record *resourcelock.LeaderElectionRecord) bool { return m.expired(name, record) },
		acquired: func() { m.acquired(s) },
	}
	s.lock.Client = fences{m.client, s.lock}
	if known := m.mu.sightings.leases[name]; known != nil {
		s.lock.known, s.lock.greatest = known.record(), known.token
	}
	m.mu.seats[shard] = s
	go func() { // ended with the tenure
		m.elect(s.tenure.ctx, s.lock, func() {})
		s.tenure.lose() // if it is not over already
		close(s.over)
		m.signal()
	}()
	context.AfterFunc(s.tenure.ctx, m.signal)
}

// acquired notes that the Lease of a shard is the replica's.
func (m *Member) acquired(s *seat) {
	m.mu.Lock()
	s.acquired = time.Now()
	m.mu.Unlock()
	m.signal()
}

// expired reports whether the replica has seen a Lease as it is for as long as it says.
func (m *Member) expired(name string, record *resourcelock.LeaderElectionRecord) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.mu.sightings.leases[name]
	return known != nil && apiequality.Semantic.DeepEqual(known.record(), record) &&
		known.holder(m.now()) == ""
}

// settle clears away what is over, and has lost shards drained.
func (m *Member) settle(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for shard, s := range m.mu.seats {
		ended := s.tenure.ctx.Err() != nil
		switch {
		case s.gone:
			delete(m.mu.seats, shard)
		case ended && s.acquired.IsZero() && isClosed(s.over):
			delete(m.mu.seats, shard)
			m.mu.pauses[shard] = time.Now().Add(m.options.retryPeriod())
			m.reportLocked(ctx, s)
		case ended && !s.acquired.IsZero() && !s.draining:
			klog.FromContext(ctx).Info("A shard was lost", "lease", s.lock.Describe(), "cause",
				context.Cause(s.tenure.ctx))
			m.leave(ctx, s)
		}
	}
}

// reportLocked logs why a shard was not acquired, unless somebody else was faster, or the log has just told
// of another one.
func (m *Member) reportLocked(ctx context.Context, s *seat) {
	cause := context.Cause(s.tenure.ctx)
	faster := errors.Is(cause, errHeld) || apierrors.IsConflict(cause) || apierrors.IsAlreadyExists(cause)
	if faster || ctx.Err() != nil || time.Since(m.mu.reported) < m.options.RetryPeriod {
		return
	}
	m.mu.reported = time.Now()
	klog.FromContext(ctx).Error(cause, "A shard was not acquired", "lease", s.lock.Describe())
}

// leave gives up a seat: it has its work ended, if any was begun, and then its Lease released. Needs the
// lock.
func (m *Member) leave(ctx context.Context, s *seat) {
	s.draining = true
	announced := s.announced
	go func() { // ended by Drain, and a time limit for the release
		if announced && m.handler.Drain != nil {
			m.drain(ctx, s.tenure)
		}
		s.tenure.end(errReleased)
		<-s.over
		m.release(ctx, s)
		m.mu.Lock()
		s.gone = true
		m.mu.Unlock()
		m.signal()
	}()
}

// drain has the work in a shard ended.
func (m *Member) drain(ctx context.Context, tenure *Tenure) {
	draining, cancel := context.WithTimeout(tenure.ctx, m.options.DrainTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	m.handler.Drain(draining, tenure)
}

// release frees the Lease for others. Where that fails they have to wait.
func (m *Member) release(ctx context.Context, s *seat) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.options.RetryPeriod)
	defer cancel()
	if err := s.lock.release(ctx); err != nil {
		klog.FromContext(ctx).Info("The Lease of a shard was not released, so that it has to expire", "lease",
			s.lock.Describe(), "err", err)
	}
}

// announce tells the handler of what has been acquired, once the first of it has waited for the others.
func (m *Member) announce() {
	m.mu.Lock()
	var fresh []*Tenure
	due := false
	for shard := range m.options.Shards {
		s := m.mu.seats[shard]
		if s == nil || s.acquired.IsZero() || s.announced || s.draining || s.tenure.ctx.Err() != nil {
			continue
		}
		fresh = append(fresh, s.tenure)
		due = due || time.Since(s.acquired) >= announceDelay
	}
	if !due {
		fresh = nil
	}
	for _, t := range fresh {
		m.mu.seats[t.shard].announced = true
	}
	m.mu.Unlock()
	if len(fresh) > 0 && m.handler.Acquired != nil {
		m.handler.Acquired(fresh)
	}
}

// act takes and gives up shards as planned, and returns how long it may be until the next look.
func (m *Member) act(ctx context.Context) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	wait := m.options.RetryPeriod
	if !m.mu.listed {
		return wait
	}
	now := m.now()
	v := m.mu.sightings.situation(m.identity, now)
	if !v.next.IsZero() {
		wait = min(wait, v.next.Sub(now))
	}
	giving := false
	for shard, holder := range v.holders {
		if s := m.mu.seats[shard]; s != nil {
			v.holders[shard] = m.identity
			giving = giving || s.draining
			if !s.acquired.IsZero() && !s.announced {
				wait = min(wait, announceDelay)
			}
		} else if holder == m.identity {
			v.holders[shard] = "" // it was lost, or somebody will see soon that it was released
		}
	}
	take, give := v.plan()
	for _, shard := range take {
		if pause := time.Until(m.mu.pauses[shard]); pause > 0 {
			wait = min(wait, pause)
			continue
		}
		m.take(ctx, shard)
	}
	if give >= 0 && !giving && m.mu.seats[give].announced {
		m.leave(ctx, m.mu.seats[give])
	}
	return max(wait, time.Millisecond)
}

// vacate gives up everything, and reports whether nothing is left.
func (m *Member) vacate(ctx context.Context) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for shard, s := range m.mu.seats {
		switch {
		case s.acquired.IsZero():
			s.tenure.end(errReleased)
			if isClosed(s.over) {
				delete(m.mu.seats, shard)
			}
		case !s.draining:
			m.leave(ctx, s)
		}
	}
	return len(m.mu.seats) == 0
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
