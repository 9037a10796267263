package shard

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrLost is the cause of the end of an Ownership's context if its Lease was not renewed in time, or another
// replica has taken it.
var ErrLost = errors.New("the shard was lost")

var errReleased = errors.New("the shard was given up")

// Ownership is the term in which this replica holds a shard. It is safe for concurrent use.
type Ownership struct {
	shard  int
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu struct {
		sync.Mutex
		token    int64
		deadline time.Time // zero means none
		timer    *time.Timer
	}
}

func newOwnership(ctx context.Context, shard int) *Ownership {
	t := &Ownership{shard: shard}
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	return t
}

// Shard returns the number of the shard, which counts from 0.
func (o *Ownership) Shard() int { return o.shard }

// Token returns the fencing token. It is greater than the tokens of all earlier ownerships of the shard. A
// storage that remembers the greatest token of all writes, and refuses writes with a smaller one, is safe
// from a replica that was paused and has lost the shard. The token is derived from the resource version of
// the Lease, so that it also grows if the Lease is reset or deleted. It is 0 for shards without Leases.
func (o *Ownership) Token() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.token
}

// Context returns a context that ends with the ownership, at the latest at the renew deadline. Its cause is
// ErrLost if the shard was not given up.
func (o *Ownership) Context() context.Context { return o.ctx }

// Valid reports whether the replica holds the shard now. It reads the monotonic clock and the wall clock,
// which continues while a machine is suspended. After a pause of the process the context may not have ended
// yet.
func (o *Ownership) Valid() bool {
	o.mu.Lock()
	deadline := o.mu.deadline
	o.mu.Unlock()
	now := time.Now()
	return o.ctx.Err() == nil && (deadline.IsZero() ||
		beforeByBothClocks(now, now.Round(0), deadline, deadline.Round(0)))
}

// beforeByBothClocks reports whether a time is before a deadline by both clocks. The monotonic clock stops
// while a machine is suspended, and the wall clock can be set back.
func beforeByBothClocks(now, wallNow, deadline, wall time.Time) bool {
	return now.Before(deadline) && wallNow.Before(wall)
}

// renewed sets the deadline after a renewal of the Lease.
func (o *Ownership) renewed(token int64, deadline time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.token, o.mu.deadline = token, deadline
	if o.mu.timer == nil {
		o.mu.timer = time.AfterFunc(time.Until(deadline), o.expire)
		return
	}
	o.mu.timer.Reset(time.Until(deadline))
}

// expire ends the ownership, unless it has been renewed while the timer fired.
func (o *Ownership) expire() {
	if !o.Valid() {
		o.end(ErrLost)
	}
}

func (o *Ownership) end(cause error) {
	o.cancel(cause)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.timer != nil {
		o.mu.timer.Stop()
	}
}
