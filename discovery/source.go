package discovery

import (
	"context"
	"sync"
	"time"
)

// snapshot is a document together with when it was asked for. It is immutable.
type snapshot struct {
	*content
	// started is when the request that confirmed the document began: what the server had at that
	// time is in it.
	started time.Time
}

// source keeps one discovery document fresh. Callers that want it at the same time share one fetch, and
// fetches start at least interval apart, so that a burst of misses or CRD events costs one round a
// second and no more.
type source struct {
	interval time.Duration
	fetch    func(ctx context.Context, earlier *content) (*content, error)
	// load returns what another process left, once, before the first fetch. May be nil.
	load func() *snapshot
	// stored is called with each new snapshot, outside of the lock and before anyone sees it. May be nil.
	stored func(snapshot)

	loaded sync.Once

	mu struct {
		sync.Mutex
		latest  *snapshot
		started time.Time // when the latest fetch began, successful or not
		flight  *flight
	}
}

// flight is a fetch under way. It is cancelled when the last caller that waits for it leaves.
type flight struct {
	done    chan struct{} // closed after err is set
	err     error
	started time.Time
	cancel  context.CancelFunc
	waiters int // under source.mu
}

// loadOnce takes over what another process left.
func (s *source) loadOnce() {
	s.loaded.Do(func() {
		if s.load == nil {
			return
		}
		found := s.load()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.mu.latest = found
	})
}

// peek returns the latest snapshot, if there is one, without asking the server.
func (s *source) peek() *snapshot {
	s.loadOnce()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.latest
}

// since returns a snapshot whose fetch started at or after t. It waits for a fetch under way, starts
// one, or waits until one may start.
func (s *source) since(ctx context.Context, t time.Time) (*snapshot, error) {
	s.loadOnce()
	for {
		s.mu.Lock()
		if latest := s.mu.latest; latest != nil && !latest.started.Before(t) {
			s.mu.Unlock()
			return latest, nil
		}
		if wait := s.interval - time.Since(s.mu.started); s.mu.flight == nil &&
			!s.mu.started.IsZero() && wait > 0 {
			s.mu.Unlock()
			if err := sleep(ctx, wait); err != nil {
				return nil, err
			}
			continue
		}
		f := s.joinLocked()
		s.mu.Unlock()
		if err := s.await(ctx, f); err != nil {
			return nil, err
		}
		if f.err != nil && !f.started.Before(t) {
			return nil, f.err
		}
	}
}

// joinLocked returns the flight under way, or starts one.
func (s *source) joinLocked() *flight {
	if f := s.mu.flight; f != nil {
		f.waiters++
		return f
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &flight{done: make(chan struct{}), started: time.Now(), cancel: cancel, waiters: 1}
	s.mu.flight, s.mu.started = f, f.started
	// The goroutine ends with its requests, which have a timeout; leaving waiters cancel it earlier.
	go s.run(ctx, f, s.mu.latest)
	return f
}

func (s *source) run(ctx context.Context, f *flight, earlier *snapshot) {
	defer f.cancel()
	var before *content
	if earlier != nil {
		before = earlier.content
	}
	c, err := s.fetch(ctx, before)
	var next *snapshot
	if err == nil {
		next = &snapshot{content: c, started: f.started}
		if s.stored != nil {
			s.stored(*next)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if next != nil {
		s.mu.latest = next
	}
	if s.mu.flight == f {
		s.mu.flight = nil
	}
	f.err = err
	close(f.done)
}

// await waits for f or ctx, and gives up f when nobody else wants it.
func (s *source) await(ctx context.Context, f *flight) error {
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.waiters--; f.waiters == 0 {
		f.cancel()
		// A newcomer must not join a cancelled flight.
		if s.mu.flight == f {
			s.mu.flight = nil
		}
	}
	return ctx.Err()
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
