package shard

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// errHeld ends an election that somebody else has won.
var errHeld = errors.New("somebody else holds the Lease")

// lock is the Lease of a shard as an elector sees it. It adds to resourcelock.LeaseLock what electing one
// leader among a few does without:
//
//   - A Lease that all have seen unchanged for as long as it says is free at once. An elector by itself
//     begins to wait only when it is made, and to have one for each shard in each replica ask all the time
//     would be hundreds of requests a second.
//   - The elector tries once to win. Who lost is better off with another shard.
//   - Holding ends by the time at which the last successful renewal was sent. An elector counts from when it
//     was answered, and waits a retry period before it counts.
//   - Holding ends as soon as somebody else is seen to hold the Lease.
//   - Each tenure has a token.
type lock struct {
	resourcelock.LeaseLock
	tenure *Tenure
	// expired reports whether a record has been seen unchanged for longer than its holder had.
	expired func(*resourcelock.LeaderElectionRecord) bool
	// known is the last record of the Lease, if any: one that was deleted may still be held. Only the elector
	// uses it.
	known *resourcelock.LeaderElectionRecord
	// greatest is the greatest token that the replica has seen, and token that of the tenure. Only the
	// elector uses them.
	greatest, token int64
	// deadline is how long a renewal is good for.
	deadline time.Duration
	// end ends the tenure, and the elector with it.
	end func(cause error)
	// acquired is called when the Lease has been written for the first time.
	acquired func()

	mu struct {
		sync.Mutex
		holding
	}
}

// holding says whether the replica holds the Lease, and the number of transitions in its record.
type holding struct {
	held        bool
	transitions int
}

var _ resourcelock.Interface = (*lock)(nil)

// Get returns the record for an elector to judge.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.LeaseLock.Get(ctx)
	now := l.state()
	if err == nil && !now.held {
		l.known = record // what the replica has seen may be older
	}
	switch {
	case apierrors.IsNotFound(err):
		if !now.held && l.known != nil && l.known.HolderIdentity != "" &&
			l.known.HolderIdentity != l.Identity() && !l.expired(l.known) {
			l.end(errHeld) // its holder will make it again, or has gone without a word
			return nil, nil, errHeld
		}
		return record, raw, err
	case err != nil:
		l.giveUpUnlessHeld(err)
		return record, raw, err
	case now.held && (record.HolderIdentity != l.Identity() || record.LeaderTransitions != now.transitions):
		l.end(ErrLost)
	case !now.held && record.HolderIdentity != "" && record.HolderIdentity != l.Identity():
		if !l.expired(record) {
			l.end(errHeld)
			break
		}
		record.HolderIdentity = "" // free for the elector to take, if the Lease is still as it was
	}
	return record, raw, err
}

// Create creates the Lease.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.LeaseLock.Create)
}

// Update writes the Lease, if it is as it was read.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.LeaseLock.Update)
}

// write writes a record that says that the replica holds the Lease.
func (l *lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord,
	send func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	before := l.state()
	if before.held {
		record.LeaderTransitions = before.transitions // also if the Lease was deleted
	}
	began := time.Now()
	if err := send(ctx, record); err != nil {
		l.giveUpUnlessHeld(err)
		return err
	}
	l.mu.Lock()
	l.mu.holding = holding{true, record.LeaderTransitions}
	l.mu.Unlock()
	l.tenure.renewed(l.token, began.Add(l.deadline))
	if !before.held {
		l.acquired()
	}
	return nil
}

func (l *lock) state() holding {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.holding
}

// giveUpUnlessHeld ends an election that has failed; renewals are tried again.
func (l *lock) giveUpUnlessHeld(err error) {
	if !l.state().held {
		l.end(err)
	}
}

// release says in the Lease that nobody holds it, as an elector does with ReleaseOnCancel. That releases
// before work is told to end where renewing has failed, so it is not set. The elector has ended.
func (l *lock) release(ctx context.Context) error {
	now := l.state()
	if !now.held {
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
