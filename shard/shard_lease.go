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

// announceDelay is the time that an acquired shard waits for others. Announced together, their objects are
// listed with one request.
const announceDelay = 250 * time.Millisecond

// shardLease is a shard of this replica, from the attempt to acquire it to its release.
type shardLease struct {
	tenure *Tenure
	lock   *lock
	// over is closed when the elector has ended.
	over chan struct{}
	// The rest is guarded by Member.mu.

	acquired  time.Time // zero if it is not acquired
	announced bool
	draining  bool
	gone      bool // drained and released
}

// take tries to acquire a shard.
func (m *Member) take(ctx context.Context, shard int) {
	name := m.options.leaseOf(shard)
	s := &shardLease{tenure: newTenure(context.WithoutCancel(ctx), shard), over: make(chan struct{})}
	s.lock = &lock{
		LeaseLock: m.leaseLock(name, map[string]string{labelShard: name[len(m.options.Name)+1:]}),
		tenure:    s.tenure, deadline: m.options.RenewDeadline, end: s.tenure.end,
		expired:  func(record *resourcelock.LeaderElectionRecord) bool { return m.expired(name, record) },
		acquired: func() { m.acquired(s) },
	}
	s.lock.Client = fences{m.client, s.lock}
	if known := m.mu.observed.leases[name]; known != nil {
		s.lock.known, s.lock.greatest = known.record(), known.token
	}
	m.mu.shards[shard] = s
	go func() { // ended with the tenure
		m.elect(s.tenure.ctx, s.lock, func() {})
		s.tenure.lose() // if it is not over already
		close(s.over)
		m.signal()
	}()
	context.AfterFunc(s.tenure.ctx, m.signal)
}

// acquired records that the replica holds the Lease of a shard.
func (m *Member) acquired(s *shardLease) {
	m.mu.Lock()
	s.acquired = time.Now()
	m.mu.Unlock()
	m.signal()
}

// expired reports whether the replica has observed the Lease with this record unchanged for its duration.
func (m *Member) expired(name string, record *resourcelock.LeaderElectionRecord) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.mu.observed.leases[name]
	return known != nil && apiequality.Semantic.DeepEqual(known.record(), record) &&
		known.holder(m.now()) == ""
}

// settle removes ended shards, and drains lost shards.
func (m *Member) settle(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for shard, s := range m.mu.shards {
		ended := s.tenure.ctx.Err() != nil
		switch {
		case s.gone:
			delete(m.mu.shards, shard)
		case ended && s.acquired.IsZero() && isClosed(s.over):
			delete(m.mu.shards, shard)
			m.mu.pauses[shard] = time.Now().Add(m.options.retryPeriod())
			m.reportLocked(ctx, s)
		case ended && !s.acquired.IsZero() && !s.draining:
			klog.FromContext(ctx).Info("Lost a shard", "lease", s.lock.Describe(), "cause",
				context.Cause(s.tenure.ctx))
			m.leave(ctx, s)
		}
	}
}

// reportLocked logs why a shard was not acquired, unless another replica was faster, or another shard was
// logged in this retry period.
func (m *Member) reportLocked(ctx context.Context, s *shardLease) {
	cause := context.Cause(s.tenure.ctx)
	faster := errors.Is(cause, errHeld) || apierrors.IsConflict(cause) || apierrors.IsAlreadyExists(cause)
	if faster || ctx.Err() != nil || time.Since(m.mu.reported) < m.options.RetryPeriod {
		return
	}
	m.mu.reported = time.Now()
	klog.FromContext(ctx).Error(cause, "Cannot acquire a shard", "lease", s.lock.Describe())
}

// leave drains a shard, if it was announced, and releases its Lease. It needs the lock.
func (m *Member) leave(ctx context.Context, s *shardLease) {
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

func (m *Member) drain(ctx context.Context, tenure *Tenure) {
	draining, cancel := context.WithTimeout(tenure.ctx, m.options.DrainTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	m.handler.Drain(draining, tenure)
}

// release releases the Lease. If that fails, other replicas have to wait until it expires.
func (m *Member) release(ctx context.Context, s *shardLease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.options.RetryPeriod)
	defer cancel()
	if err := s.lock.release(ctx); err != nil {
		klog.FromContext(ctx).Info("Cannot release the Lease of a shard, which has to expire", "lease",
			s.lock.Describe(), "err", err)
	}
}

// announce calls Acquired with the acquired shards, if the first of them has waited for announceDelay.
func (m *Member) announce() {
	m.mu.Lock()
	var acquired []*Tenure
	due := false
	for shard := range m.options.Shards {
		s := m.mu.shards[shard]
		if s == nil || s.acquired.IsZero() || s.announced || s.draining || s.tenure.ctx.Err() != nil {
			continue
		}
		acquired = append(acquired, s.tenure)
		due = due || time.Since(s.acquired) >= announceDelay
	}
	if !due {
		acquired = nil
	}
	for _, t := range acquired {
		m.mu.shards[t.shard].announced = true
	}
	m.mu.Unlock()
	if len(acquired) > 0 && m.handler.Acquired != nil {
		m.handler.Acquired(acquired)
	}
}

// act takes and gives up shards by the plan, and returns the time until the next plan.
func (m *Member) act(ctx context.Context) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	wait := m.options.RetryPeriod
	if !m.mu.listed {
		return wait
	}
	now := m.now()
	v := m.mu.observed.situation(m.identity, now)
	if !v.next.IsZero() {
		wait = min(wait, v.next.Sub(now))
	}
	giving := false
	for shard, holder := range v.holders {
		if s := m.mu.shards[shard]; s != nil {
			v.holders[shard] = m.identity
			giving = giving || s.draining
			if !s.acquired.IsZero() && !s.announced {
				wait = min(wait, announceDelay)
			}
		} else if holder == m.identity {
			v.holders[shard] = "" // it was lost or released
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
	if give >= 0 && !giving && m.mu.shards[give].announced {
		m.leave(ctx, m.mu.shards[give])
	}
	return max(wait, time.Millisecond)
}

// vacate gives up all shards, and reports whether none is left.
func (m *Member) vacate(ctx context.Context) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for shard, s := range m.mu.shards {
		switch {
		case s.acquired.IsZero():
			s.tenure.end(errReleased)
			if isClosed(s.over) {
				delete(m.mu.shards, shard)
			}
		case !s.draining:
			m.leave(ctx, s)
		}
	}
	return len(m.mu.shards) == 0
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
