package shard

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrLost is the cause of the end of a Tenure's context when its Lease could not be renewed in time, or
// somebody else has taken it.
var ErrLost = errors.New("the shard was lost")

// errReleased is the cause after a shard has been given up.
var errReleased = errors.New("the shard was given up")

// Tenure is a shard in the hands of this replica, until it is given up or lost. It is safe for concurrent
// use.
type Tenure struct {
	shard  int
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu struct {
		sync.Mutex
		token    int64
		deadline time.Time // zero: never
		wall     time.Time // deadline by the wall clock alone
		timer    *time.Timer
	}
}

func newTenure(ctx context.Context, shard int) *Tenure {
	t := &Tenure{shard: shard}
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	return t
}

// Shard returns the number of the shard, from 0 on.
func (t *Tenure) Shard() int { return t.shard }

// Token is for fencing: it is greater than that of any earlier tenure of the shard. Who keeps the greatest
// token that ever came with a write, and refuses writes with a smaller one, is safe from a replica that was
// paused and does not know that its time is over. It is derived from the resource version of the Lease, so
// that it also grows if the Lease is reset or deleted; 0 for shards without Leases.
func (t *Tenure) Token() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.token
}

// Context ends when the tenure does: at the latest when the renew deadline is over. Its cause is ErrLost, if
// it is not given up.
func (t *Tenure) Context() context.Context { return t.ctx }

// Valid reports whether the replica may work in the shard at this moment. It looks at the clocks, also at the
// one that goes on while a machine is suspended. The context may still be open after a pause.
func (t *Tenure) Valid() bool {
	t.mu.Lock()
	deadline, wall := t.mu.deadline, t.mu.wall
	t.mu.Unlock()
	now := time.Now()
	return t.ctx.Err() == nil && (deadline.IsZero() || before(now, now.Round(0), deadline, wall))
}

// before reports whether a time is before a deadline by both clocks. The monotonic clock stands still while a
// machine is suspended, and the wall clock may be set back.
func before(now, wallNow, deadline, wall time.Time) bool {
	return now.Before(deadline) && wallNow.Before(wall)
}

// renewed notes until when the Lease is good.
func (t *Tenure) renewed(token int64, deadline time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.token, t.mu.deadline, t.mu.wall = token, deadline, deadline.Round(0)
	if t.mu.timer == nil {
		t.mu.timer = time.AfterFunc(time.Until(deadline), t.expire)
		return
	}
	t.mu.timer.Reset(time.Until(deadline))
}

// expire ends the tenure, unless it has been renewed while the timer fired.
func (t *Tenure) expire() {
	if !t.Valid() {
		t.lose()
	}
}

// lose ends the tenure against the replica's will.
func (t *Tenure) lose() { t.end(ErrLost) }

// end ends the tenure.
func (t *Tenure) end(cause error) {
	t.cancel(cause)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.timer != nil {
		t.mu.timer.Stop()
	}
}
