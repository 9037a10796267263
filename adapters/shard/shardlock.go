package shard

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

var errHeldByOther = errors.New("another replica holds the Lease")

// shardLock is the Lock of an elector for the Lease of a shard. Unlike with resourcelock.LeaseLock, a Lease
// that was observed unchanged for its duration is free immediately, the elector tries once, and an ownership
// ends a fixed time after the last successful renewal was sent, or when another replica holds the Lease. An
// elector for each shard in each replica would send hundreds of requests a second.
type shardLock struct {
	resourcelock.LeaseLock
	ownership *Ownership
	// isExpired reports whether a record was observed unchanged for its duration.
	isExpired func(*resourcelock.LeaderElectionRecord) bool
	// lastRecord is the last record of the Lease, or nil. A deleted Lease may still be held. Only the elector
	// uses it.
	lastRecord *resourcelock.LeaderElectionRecord
	// greatestToken is the greatest observed token. token is the token of the ownership. Only the elector
	// uses them.
	greatestToken, token int64
	// deadline is the duration of an ownership after a renewal.
	deadline time.Duration
	// endOwnership ends the ownership, and the elector with it.
	endOwnership func(cause error)
	// onAcquired is called when the Lease has been written for the first time.
	onAcquired func()

	mu struct {
		sync.Mutex
		leaseState
	}
}

// leaseState is the state of the Lease: whether the replica holds it, and its number of transitions.
type leaseState struct {
	isHeld      bool
	transitions int
}

var _ resourcelock.Interface = (*shardLock)(nil)

func (l *shardLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.LeaseLock.Get(ctx)
	holding := l.state()
	if err == nil && !holding.isHeld {
		l.lastRecord = record // which may be newer
	}
	switch {
	case apierrors.IsNotFound(err):
		if !holding.isHeld && l.lastRecord != nil && l.lastRecord.HolderIdentity != "" &&
			l.lastRecord.HolderIdentity != l.Identity() && !l.isExpired(l.lastRecord) {
			l.endOwnership(errHeldByOther) // its holder will create it again, or was killed
			return nil, nil, errHeldByOther
		}
		return record, raw, err
	case err != nil:
		l.failElectionUnlessHeld(err)
		return record, raw, err
	case holding.isHeld &&
		(record.HolderIdentity != l.Identity() || record.LeaderTransitions != holding.transitions):
		l.endOwnership(ErrLost)
	case !holding.isHeld && record.HolderIdentity != "" && record.HolderIdentity != l.Identity():
		if !l.isExpired(record) {
			l.endOwnership(errHeldByOther)
			break
		}
		record.HolderIdentity = "" // the elector can take it, if the Lease has not changed
	}
	return record, raw, err
}

func (l *shardLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.LeaseLock.Create)
}

// Update implements resourcelock.Interface. It fails if the Lease has changed since it was read.
func (l *shardLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.LeaseLock.Update)
}

// write writes a record with the replica as the holder.
func (l *shardLock) write(ctx context.Context, record resourcelock.LeaderElectionRecord,
	send func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	holding := l.state()
	if holding.isHeld {
		record.LeaderTransitions = holding.transitions // also if the Lease was deleted
	}
	began := time.Now()
	if err := send(ctx, record); err != nil {
		l.failElectionUnlessHeld(err)
		return err
	}
	l.mu.Lock()
	l.mu.leaseState = leaseState{true, record.LeaderTransitions}
	l.mu.Unlock()
	l.ownership.renewed(l.token, began.Add(l.deadline))
	if !holding.isHeld {
		l.onAcquired()
	}
	return nil
}

func (l *shardLock) state() leaseState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.leaseState
}

// failElectionUnlessHeld ends a failed election. Renewals are repeated.
func (l *shardLock) failElectionUnlessHeld(err error) {
	if !l.state().isHeld {
		l.endOwnership(err)
	}
}

// release removes the holder from the Lease after the elector has ended. After a failed
// renewal, an elector with leaderelection.ReleaseOnCancel would do that before the work has ended.
func (l *shardLock) release(ctx context.Context) error {
	now := l.state()
	if !now.isHeld {
		return nil
	}
	for {
		record, _, err := l.LeaseLock.Get(ctx)
		if err != nil || record.HolderIdentity != l.Identity() ||
			record.LeaderTransitions != now.transitions {
			return err
		}
		record.HolderIdentity, record.LeaseDurationSeconds = "", 1
		if err := l.LeaseLock.Update(ctx, *record); !apierrors.IsConflict(err) {
			return err
		}
	}
}
