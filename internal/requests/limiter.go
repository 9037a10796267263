package requests

import (
	"context"
	"slices"
	"sync"
	"time"
)

// ListPool limits the number of concurrent lists over all clusters of a group. A free slot goes to the
// waiting cluster with the fewest slots. It is safe for concurrent use.
type ListPool struct {
	limit int

	mu struct {
		sync.Mutex
		// active is the number of lists in progress, without lists of unresponsive clusters.
		active   int
		limiters int
		waiting  []*Limiter // each has waiting lists; the longest wait is first
	}
}

// NewListPool returns a pool of at most limit concurrent lists.
func NewListPool(limit int) *ListPool { return &ListPool{limit: limit} }

// Limiter limits the number of concurrent lists of one cluster. A 429 halves the limit; each later list that
// succeeds increases it by one. Waiting callers are served in order. It is safe for concurrent use.
//
// The lists also take slots of the pool. The lists of an unresponsive cluster take none, so that they delay
// no other cluster. Their number is limited to the cluster's fair share.
type Limiter struct {
	pool  *ListPool
	limit int
	now   func() time.Time

	// ListPool.mu guards the following fields.

	currentLimit, active int
	waiting              []chan struct{} // each is closed when its owner gets a slot
	// limitFixedUntil is the time before which the limit does not change: a burst of 429s counts once, and
	// the limit does not grow before the server's retry time.
	limitFixedUntil time.Time
	// unresponsive is set after a connection failure, or when the cluster sends nothing for answerTimeout
	// during a list, until the next response. lastResponse is the time of the latest data.
	unresponsive bool
	lastResponse time.Time
}

const (
	// shrinkPause is the minimum time between two reductions of the limit.
	shrinkPause = time.Second
	// SlotTimeout is the longest time that a list holds its slot.
	SlotTimeout = time.Minute
	// answerTimeout is how long a list holds a slot of the pool while its cluster sends no response at all.
	answerTimeout = 2 * time.Second
	// minShare is the minimum share of an unresponsive cluster. It is more than one: while one list hangs,
	// another one can show that the cluster responds again.
	minShare = 2
)

// NewLimiter returns a limiter of at most limit concurrent lists, which shares the pool until Leave.
func (p *ListPool) NewLimiter(limit int, now func() time.Time) *Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.limiters++
	return &Limiter{pool: p, limit: limit, now: now, currentLimit: limit}
}

// LeavePool ends the cluster's share of the pool. The limiter remains usable, so that its lists can end.
func (l *Limiter) LeavePool() {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	l.pool.mu.limiters--
	l.pool.admitLocked()
}

// Acquire waits for a slot. The caller releases it by calling release, which is idempotent. The slot is
// released after SlotTimeout at the latest, so that a hanging list does not block the lists of other types.
func (l *Limiter) Acquire(ctx context.Context) (release func(), err error) {
	return l.acquire(ctx, false)
}

// AcquireFirst works like Acquire for a list that has held a slot before. It precedes the lists that wait.
func (l *Limiter) AcquireFirst(ctx context.Context) (release func(), err error) {
	return l.acquire(ctx, true)
}

func (l *Limiter) acquire(ctx context.Context, first bool) (release func(), err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	granted := l.queue(first)
	select {
	case <-granted:
		releaseOnce := sync.OnceFunc(l.release)
		stopWatching := l.watchSilence()
		timer := time.AfterFunc(SlotTimeout, releaseOnce)
		return func() {
			stopWatching()
			timer.Stop()
			releaseOnce()
		}, nil
	case <-ctx.Done():
		l.cancelWait(granted)
		return nil, context.Cause(ctx)
	}
}

func (l *Limiter) queue(first bool) chan struct{} {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	granted := make(chan struct{})
	if len(l.waiting) == 0 {
		l.pool.mu.waiting = append(l.pool.mu.waiting, l)
	}
	at := len(l.waiting)
	if first {
		at = 0
	}
	l.waiting = slices.Insert(l.waiting, at, granted)
	l.pool.admitLocked()
	return granted
}

// cancelWait undoes queue, whether or not the slot was granted.
func (l *Limiter) cancelWait(granted chan struct{}) {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	if i := slices.Index(l.waiting, granted); i >= 0 {
		l.dropWaitingLocked(i)
		return
	}
	l.releaseLocked()
}

func (l *Limiter) release() {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	l.releaseLocked()
}

func (l *Limiter) releaseLocked() {
	l.countLocked(-1)
	l.pool.admitLocked()
}

// countLocked changes the number of lists in progress.
func (l *Limiter) countLocked(by int) {
	l.active += by
	if !l.unresponsive {
		l.pool.mu.active += by
	}
}

// dropWaitingLocked removes a waiting list.
func (l *Limiter) dropWaitingLocked(i int) {
	l.waiting = slices.Delete(l.waiting, i, i+1)
	if len(l.waiting) == 0 {
		l.pool.mu.waiting = slices.DeleteFunc(l.pool.mu.waiting, func(w *Limiter) bool { return w == l })
	}
}

// admitLocked grants free slots.
func (p *ListPool) admitLocked() {
	for {
		var next *Limiter
		for _, l := range p.mu.waiting {
			if l.hasFreeSlotLocked() && (next == nil || l.active < next.active) {
				next = l
			}
		}
		if next == nil {
			return
		}
		close(next.waiting[0])
		next.dropWaitingLocked(0)
		next.countLocked(1)
		if i := slices.Index(p.mu.waiting, next); i >= 0 { // the others are next
			p.mu.waiting = append(slices.Delete(p.mu.waiting, i, i+1), next)
		}
	}
}

func (l *Limiter) hasFreeSlotLocked() bool {
	if l.unresponsive {
		share := max(l.pool.limit/max(l.pool.mu.limiters, 1), minShare)
		return l.active < min(l.currentLimit, share)
	}
	return l.active < l.currentLimit && l.pool.mu.active < l.pool.limit
}

// watchSilence makes the cluster unresponsive while it sends nothing for answerTimeout, until stop.
func (l *Limiter) watchSilence() (stop func()) {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	since, stopped := l.now(), false
	var timer *time.Timer
	timer = time.AfterFunc(answerTimeout, func() {
		l.pool.mu.Lock()
		defer l.pool.mu.Unlock()
		if stopped {
			return
		}
		if l.lastResponse.After(since) {
			since = l.lastResponse
		}
		rest := answerTimeout - l.now().Sub(since)
		if rest <= 0 {
			l.setUnresponsiveLocked(true)
			rest = answerTimeout
		}
		timer.Reset(rest)
	})
	return func() {
		l.pool.mu.Lock()
		defer l.pool.mu.Unlock()
		stopped = true
		timer.Stop()
	}
}

// recordContact records whether the cluster has responded to a request, or the connection has failed.
func (l *Limiter) recordContact(responded bool) {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	if responded {
		l.lastResponse = l.now()
	}
	l.setUnresponsiveLocked(!responded)
}

func (l *Limiter) setUnresponsiveLocked(unresponsive bool) {
	if l.unresponsive == unresponsive {
		return
	}
	active := l.active
	l.countLocked(-active)
	l.unresponsive = unresponsive
	l.countLocked(active)
	l.pool.admitLocked()
}

// throttled records that the server responded with 429. retryAfter is the pause that it asks for.
func (l *Limiter) throttled(retryAfter time.Duration) {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	now := l.now()
	if !now.Before(l.limitFixedUntil) {
		l.currentLimit = max(l.currentLimit/2, 1)
	}
	if until := now.Add(max(retryAfter, shrinkPause)); until.After(l.limitFixedUntil) {
		l.limitFixedUntil = until
	}
}

// succeeded records that a list succeeded.
func (l *Limiter) succeeded() {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	if l.currentLimit < l.limit && !l.now().Before(l.limitFixedUntil) {
		l.currentLimit++
		l.pool.admitLocked()
	}
}

// Load returns the number of lists in progress, the number of waiting lists, and the current limit.
func (l *Limiter) Load() (active, waiting, limit int) {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	return l.active, len(l.waiting), l.currentLimit
}
