package requests

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Limiter bounds how many lists are under way at once. A server that answers 429 halves the bound; lists that
// succeed once it has had its time bring it back, one each. Who waits is served in order. It is safe for
// concurrent use.
type Limiter struct {
	most int
	now  func() time.Time

	mu struct {
		sync.Mutex
		bound, held int
		waiting     []chan struct{} // each is closed when its owner may go on
		// eased is when the bound may change again: a burst of 429s counts once, and nothing is sped up
		// before the time that the server asked for is over.
		eased time.Time
	}
}

// shrinkPause is the least time between two changes of the bound that 429s make.
const shrinkPause = time.Second

// NewLimiter returns a limiter of most lists at once.
func NewLimiter(most int, now func() time.Time) *Limiter {
	l := &Limiter{most: most, now: now}
	l.mu.bound = most
	return l
}

// SlotPatience is how long a list holds its slot at most.
const SlotPatience = time.Minute

// Acquire waits for a slot. The slot is given back by calling release, once; calling it again does nothing.
// It is given up after SlotPatience at the latest: a request that nobody answers, or that takes for ever,
// must not keep the lists of other types waiting.
func (l *Limiter) Acquire(ctx context.Context) (release func(), err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	turn := l.queue()
	select {
	case <-turn:
		give := sync.OnceFunc(l.release)
		timer := time.AfterFunc(SlotPatience, give)
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

// leave takes back what queue did, whether or not its turn has come.
func (l *Limiter) leave(turn chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.mu.waiting, turn); i >= 0 {
		l.mu.waiting = slices.Delete(l.mu.waiting, i, i+1)
		return
	}
	l.mu.held--
	l.admitLocked()
}

func (l *Limiter) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.held--
	l.admitLocked()
}

func (l *Limiter) admitLocked() {
	for l.mu.held < l.mu.bound && len(l.mu.waiting) > 0 {
		close(l.mu.waiting[0])
		l.mu.waiting = slices.Delete(l.mu.waiting, 0, 1)
		l.mu.held++
	}
}

// throttled records that the server answered 429 and wants to be left alone for a while.
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

// succeeded records that a list was answered.
func (l *Limiter) succeeded() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.bound < l.most && !l.now().Before(l.mu.eased) {
		l.mu.bound++
		l.admitLocked()
	}
}

// Load returns how many lists are under way, how many wait, and how many may be under way at present.
func (l *Limiter) Load() (held, waiting, bound int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.held, len(l.mu.waiting), l.mu.bound
}
