package requests

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Limiter limits the number of concurrent lists. A 429 halves the limit; each later list that succeeds
// increases it by one. Waiting callers are served in order. It is safe for concurrent use.
type Limiter struct {
	limit int
	now   func() time.Time

	mu struct {
		sync.Mutex
		currentLimit, active int
		waiting              []chan struct{} // each is closed when its owner gets a slot
		// limitFixedUntil is the time before which the limit does not change: a burst of 429s counts once,
		// and the limit does not grow before the server's retry time.
		limitFixedUntil time.Time
	}
}

// shrinkPause is the minimum time between two reductions of the limit.
const shrinkPause = time.Second

// NewLimiter returns a limiter of at most limit concurrent lists.
func NewLimiter(limit int, now func() time.Time) *Limiter {
	l := &Limiter{limit: limit, now: now}
	l.mu.currentLimit = limit
	return l
}

// SlotTimeout is the longest time that a list holds its slot.
const SlotTimeout = time.Minute

// Acquire waits for a slot. The caller releases it by calling release, which is idempotent. The slot is
// released after SlotTimeout at the latest, so that a hanging list does not block the lists of other types.
func (l *Limiter) Acquire(ctx context.Context) (release func(), err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	granted := l.queue()
	select {
	case <-granted:
		releaseOnce := sync.OnceFunc(l.release)
		timer := time.AfterFunc(SlotTimeout, releaseOnce)
		return func() {
			timer.Stop()
			releaseOnce()
		}, nil
	case <-ctx.Done():
		l.cancelWait(granted)
		return nil, context.Cause(ctx)
	}
}

func (l *Limiter) queue() chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	granted := make(chan struct{})
	l.mu.waiting = append(l.mu.waiting, granted)
	l.admitLocked()
	return granted
}

// cancelWait undoes queue, whether or not the slot was granted.
func (l *Limiter) cancelWait(granted chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.mu.waiting, granted); i >= 0 {
		l.mu.waiting = slices.Delete(l.mu.waiting, i, i+1)
		return
	}
	l.mu.active--
	l.admitLocked()
}

func (l *Limiter) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.active--
	l.admitLocked()
}

func (l *Limiter) admitLocked() {
	for l.mu.active < l.mu.currentLimit && len(l.mu.waiting) > 0 {
		close(l.mu.waiting[0])
		l.mu.waiting = slices.Delete(l.mu.waiting, 0, 1)
		l.mu.active++
	}
}

// throttled records that the server responded with 429. retryAfter is the pause that it asks for.
func (l *Limiter) throttled(retryAfter time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if !now.Before(l.mu.limitFixedUntil) {
		l.mu.currentLimit = max(l.mu.currentLimit/2, 1)
	}
	if until := now.Add(max(retryAfter, shrinkPause)); until.After(l.mu.limitFixedUntil) {
		l.mu.limitFixedUntil = until
	}
}

// succeeded records that a list succeeded.
func (l *Limiter) succeeded() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.currentLimit < l.limit && !l.now().Before(l.mu.limitFixedUntil) {
		l.mu.currentLimit++
		l.admitLocked()
	}
}

// Load returns the number of lists in progress, the number of waiting lists, and the current limit.
func (l *Limiter) Load() (active, waiting, limit int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.active, len(l.mu.waiting), l.mu.currentLimit
}
