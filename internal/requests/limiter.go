package requests

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Limiter bounds the number of concurrent lists. A 429 halves the bound; each later list that succeeds
// increases it by one. Waiting callers are served in order. It is safe for concurrent use.
type Limiter struct {
	limit int
	now   func() time.Time

	mu struct {
		sync.Mutex
		bound, active int
		waiting       []chan struct{} // each is closed when its owner gets a slot
		// eased is the time before which the bound does not change: a burst of 429s counts once, and the
		// bound does not grow before the server's retry time.
		eased time.Time
	}
}

// shrinkPause is the minimum time between two reductions of the bound.
const shrinkPause = time.Second

// NewLimiter returns a limiter of at most limit concurrent lists.
func NewLimiter(limit int, now func() time.Time) *Limiter {
	l := &Limiter{limit: limit, now: now}
	l.mu.bound = limit
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
	turn := l.queue()
	select {
	case <-turn:
		give := sync.OnceFunc(l.release)
		timer := time.AfterFunc(SlotTimeout, give)
		return func() {
			timer.Stop()
			give()
		}, nil
	case <-ctx.Done():
		l.leave(turn)
		return nil, context.Cause(ctx)
	}
}

func (l *Limiter) queue() chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	turn := make(chan struct{})
	l.mu.waiting = append(l.mu.waiting, turn)
	l.admitLocked()
	return turn
}

// leave undoes queue, whether or not the slot was granted.
func (l *Limiter) leave(turn chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.mu.waiting, turn); i >= 0 {
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
	for l.mu.active < l.mu.bound && len(l.mu.waiting) > 0 {
		close(l.mu.waiting[0])
		l.mu.waiting = slices.Delete(l.mu.waiting, 0, 1)
		l.mu.active++
	}
}

// throttled records that the server answered 429 and asks for a pause.
func (l *Limiter) throttled(retryAfter time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if !now.Before(l.mu.eased) {
		l.mu.bound = max(l.mu.bound/2, 1)
	}
	if until := now.Add(max(retryAfter, shrinkPause)); until.After(l.mu.eased) {
		l.mu.eased = until
	}
}

// succeeded records that a list succeeded.
func (l *Limiter) succeeded() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.bound < l.limit && !l.now().Before(l.mu.eased) {
		l.mu.bound++
		l.admitLocked()
	}
}

// Load returns the number of lists in progress, the number of waiting lists, and the current bound.
func (l *Limiter) Load() (active, waiting, bound int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.active, len(l.mu.waiting), l.mu.bound
}
