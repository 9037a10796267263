package shard

import (
	"context"
	"errors"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/internal/queue"
)

// acquireDelay is the time that an acquired shard waits for others. Announced together, their objects are
// listed with one request.
const acquireDelay = 250 * time.Millisecond

// shardLease is a shard of this replica, from the attempt to acquire it to its release.
type shardLease struct {
	*ownLease
	ownership *Ownership
	// holdEnded is closed when hold has returned. Until then, only hold uses the ownLease.
	holdEnded chan struct{}
	// observed is the state of the Lease when the election began; nil if there was no Lease.
	observed *observedLease
	// The rest is guarded by Member.mu.

	acquired      time.Time // zero if it is not acquired
	handlerCalled bool
	draining      bool
	released      bool // drained and released
}

// failedElection is the last failed election for a shard. The replica does not try again before retryAt,
// unless the Lease changes: another replica may have released it during the election.
type failedElection struct {
	observed *observedLease
	retryAt  time.Time
}

// electionPause returns the time until the replica can try to acquire a shard.
func (m *Member) electionPause(shard int) time.Duration {
	failed, ok := m.mu.failedElections[shard]
	if !ok || failed.observed != m.mu.observed.leases[m.options.leaseOf(shard)] {
		return 0
	}
	return time.Until(failed.retryAt)
}

func (m *Member) tryAcquire(ctx context.Context, shard int) {
	name := m.options.leaseOf(shard)
	lease := &shardLease{ownLease: m.newLease(name), observed: m.mu.observed.leases[name],
		ownership: newOwnership(context.WithoutCancel(ctx), shard), holdEnded: make(chan struct{})}
	lease.labels[labelShard] = name[len(m.options.Name)+1:]
	m.mu.shards[shard] = lease
	go func() { // ended with the ownership
		lease.ownership.end(m.hold(lease))
		close(lease.holdEnded)
		m.wake()
	}()
	context.AfterFunc(lease.ownership.ctx, m.wake)
}

// hold tries once to acquire the Lease of a shard, and renews it until the ownership ends. It returns the
// cause of the end.
func (m *Member) hold(lease *shardLease) error {
	ctx := lease.ownership.ctx
	if err := lease.acquire(ctx, lease.observed); err != nil {
		return err
	}
	lease.ownership.renewed(lease.token, lease.sent.Add(m.options.RenewDeadline))
	m.mu.Lock()
	lease.acquired = time.Now()
	m.mu.Unlock()
	m.wake()
	for {
		pause(ctx, m.options.retryPeriod())
		if ctx.Err() != nil {
			return ErrLost
		}
		switch err := lease.renew(ctx); {
		case err == nil:
			lease.ownership.renewed(lease.token, lease.sent.Add(m.options.RenewDeadline))
		case errors.Is(err, ErrLost):
			return err
		}
	}
}

// expired reports whether the replica has observed the Lease in this state unchanged for its duration.
func (m *Member) expired(name string, spec coordinationv1.LeaseSpec) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	observed := m.mu.observed.leases[name]
	return observed != nil && apiequality.Semantic.DeepEqual(observed.spec, spec) &&
		observed.holder(m.now()) == ""
}

// cleanUp removes ended shards, and drains lost shards.
func (m *Member) cleanUp(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for shard, lease := range m.mu.shards {
		hasEnded := lease.ownership.ctx.Err() != nil
		switch {
		case lease.released:
			delete(m.mu.shards, shard)
		case hasEnded && lease.acquired.IsZero() && queue.IsClosed(lease.holdEnded):
			delete(m.mu.shards, shard)
			m.mu.failedElections[shard] = failedElection{lease.observed,
				time.Now().Add(m.options.retryPeriod())}
			m.reportLocked(ctx, lease)
		case hasEnded && !lease.acquired.IsZero() && !lease.draining:
			klog.FromContext(ctx).Info("Lost a shard", "lease", lease.name, "cause", context.Cause(lease.ownership.ctx))
			m.giveUp(ctx, lease)
		}
	}
}

// reportLocked logs why a shard was not acquired, unless another replica was faster, or another shard was
// logged in this retry period.
func (m *Member) reportLocked(ctx context.Context, lease *shardLease) {
	cause := context.Cause(lease.ownership.ctx)
	isExpected := errors.Is(cause, errHeldByOther) || apierrors.IsConflict(cause) ||
		apierrors.IsAlreadyExists(cause)
	if isExpected || ctx.Err() != nil || time.Since(m.mu.lastReport) < m.options.RetryPeriod {
		return
	}
	m.mu.lastReport = time.Now()
	klog.FromContext(ctx).Error(cause, "Cannot acquire a shard", "lease", lease.name)
}

// giveUp drains a shard, if it was announced, and releases its Lease. It needs the lock.
func (m *Member) giveUp(ctx context.Context, lease *shardLease) {
	lease.draining = true
	announced := lease.handlerCalled
	go func() { // ended by Drain, and a time limit for the release
		if announced && m.handler.Drain != nil {
			m.drain(ctx, lease.ownership)
		}
		lease.ownership.end(errReleased)
		<-lease.holdEnded
		m.release(ctx, lease)
		m.mu.Lock()
		lease.released = true
		m.mu.Unlock()
		m.wake()
	}()
}

func (m *Member) drain(ctx context.Context, ownership *Ownership) {
	draining, cancel := context.WithTimeout(ownership.ctx, m.options.DrainTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	m.handler.Drain(draining, ownership)
}

// release releases the Lease. If that fails, other replicas have to wait until it expires.
func (m *Member) release(ctx context.Context, lease *shardLease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.options.RetryPeriod)
	defer cancel()
	if err := lease.ownLease.release(ctx); err != nil {
		klog.FromContext(ctx).Info("Cannot release the Lease of a shard, which has to expire", "lease", lease.name, "err", err)
	}
}

// notifyAcquired calls Acquired with all acquired shards when one was acquired at least acquireDelay ago.
func (m *Member) notifyAcquired() {
	m.mu.Lock()
	var acquired []*Ownership
	due := false
	for shard := range m.options.Shards {
		s := m.mu.shards[shard]
		if s == nil || s.acquired.IsZero() || s.handlerCalled || s.draining || s.ownership.ctx.Err() != nil {
			continue
		}
		acquired = append(acquired, s.ownership)
		due = due || time.Since(s.acquired) >= acquireDelay
	}
	if !due {
		acquired = nil
	}
	for _, t := range acquired {
		m.mu.shards[t.shard].handlerCalled = true
	}
	m.mu.Unlock()
	if len(acquired) > 0 && m.handler.Acquired != nil {
		m.handler.Acquired(acquired)
	}
}

// applyPlan takes and gives up shards by the plan, and returns the time until the next plan.
func (m *Member) applyPlan(ctx context.Context) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	wait := m.options.RetryPeriod
	if !m.mu.isListed {
		return wait
	}
	now := m.now()
	state := m.mu.observed.planInput(m.identity, now)
	if !state.nextExpiry.IsZero() {
		wait = min(wait, state.nextExpiry.Sub(now))
	}
	isGivingUp := false
	for shard, holder := range state.holders {
		if s := m.mu.shards[shard]; s != nil {
			state.holders[shard] = m.identity
			isGivingUp = isGivingUp || s.draining
			if !s.acquired.IsZero() && !s.handlerCalled {
				wait = min(wait, acquireDelay)
			}
		} else if holder == m.identity {
			state.holders[shard] = "" // it was lost or released
		}
	}
	take, give := state.decide()
	for _, shard := range take {
		if pause := m.electionPause(shard); pause > 0 {
			wait = min(wait, pause)
			continue
		}
		m.tryAcquire(ctx, shard)
	}
	if give >= 0 && !isGivingUp && m.mu.shards[give].handlerCalled {
		m.giveUp(ctx, m.mu.shards[give])
	}
	return max(wait, time.Millisecond)
}

// giveUpAll gives up all shards, and reports whether none is left.
func (m *Member) giveUpAll(ctx context.Context) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.mu.shards {
		if s.acquired.IsZero() {
			s.ownership.end(errReleased) // cleanUp removes it when hold has returned
		} else if !s.draining {
			m.giveUp(ctx, s)
		}
	}
	return len(m.mu.shards) == 0
}
