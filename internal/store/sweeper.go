package store

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// Sweeper compresses unread objects of a group's adaptive stores in the background, and enforces a memory
// budget. Store.Sweep decides about an object from its recorded reads. The Sweeper decides when to sweep:
// after a store was filled, every few seconds, and while the stores exceed the budget. It works in slices of
// less than a millisecond, with pauses.
//
// One goroutine serves all joined stores, while there are any. It is safe for concurrent use.
type Sweeper struct {
	budget int64

	mu struct {
		sync.Mutex
		// members has a function for each store that reports whether its cluster is unreachable.
		members map[*Store]func() bool
		// filled are the members filled since the last call of takeFilled.
		filled map[*Store]struct{}
		run    *sweeperRun // nil without members
	}
}

type sweeperRun struct {
	cancel context.CancelFunc
	ended  chan struct{}
	// wake holds a token while filled is not empty.
	wake chan struct{}
	// requests receives calls of Compress.
	requests chan compressRequest
}

type compressRequest struct {
	store *Store
	done  chan struct{} // closed after compressing
}

// NewSweeper returns a Sweeper that enforces a total of at most budget bytes. Zero means no limit.
func NewSweeper(budget int64) *Sweeper {
	s := &Sweeper{budget: budget}
	s.mu.members, s.mu.filled = map[*Store]func() bool{}, map[*Store]struct{}{}
	return s
}

// Join adds a store until leave is called. isUnreachable reports whether its cluster is unreachable. An
// adaptive store is swept; with a budget, every store counts towards it. If no store remains, leave waits for
// the goroutine to end.
func (s *Sweeper) Join(member *Store, isUnreachable func() bool) (leave func()) {
	adaptive := member.Adaptive() != nil
	if !adaptive && s.budget == 0 {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.members[member] = isUnreachable
	if s.mu.run == nil {
		s.startLocked()
	}
	if adaptive {
		member.OnFill(func() { s.recordFill(member) })
	}
	return func() { s.leave(member) }
}

func (s *Sweeper) startLocked() {
	ctx, cancel := context.WithCancel(context.Background())
	r := &sweeperRun{cancel: cancel, ended: make(chan struct{}), wake: make(chan struct{}, 1),
		requests: make(chan compressRequest)}
	s.mu.run = r
	go func() { // ended by the last leave
		defer close(r.ended)
		(&sweepWorker{sweeper: s, run: r}).loop(ctx)
	}()
}

// Compress compresses the objects of a member that are not known to be in use, and returns when that is
// complete. It does nothing for stores that are not adaptive or have not joined. It returns the context's
// cause if ctx ends first. Concurrent calls are served one after the other.
func (s *Sweeper) Compress(ctx context.Context, member *Store) error {
	s.mu.Lock()
	_, joined := s.mu.members[member]
	r := s.mu.run
	s.mu.Unlock()
	if !joined || member.Adaptive() == nil {
		return nil
	}
	done := make(chan struct{})
	select {
	case r.requests <- compressRequest{member, done}:
	case <-r.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-done:
		return nil
	case <-r.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Sweeper) leave(member *Store) {
	s.mu.Lock()
	delete(s.mu.members, member)
	delete(s.mu.filled, member)
	var lastRun *sweeperRun
	if len(s.mu.members) == 0 {
		lastRun, s.mu.run = s.mu.run, nil
	}
	s.mu.Unlock()
	if lastRun != nil {
		lastRun.cancel()
		<-lastRun.ended
	}
}

// recordFill records that a store has been filled. It does not block.
func (s *Sweeper) recordFill(member *Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, joined := s.mu.members[member]; !joined {
		return
	}
	s.mu.filled[member] = struct{}{}
	select {
	case s.mu.run.wake <- struct{}{}:
	default:
	}
}

// takeFilled returns the stores filled since the last call.
func (s *Sweeper) takeFilled() []*Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	filled := slices.Collect(maps.Keys(s.mu.filled))
	clear(s.mu.filled)
	return filled
}

func (s *Sweeper) members() map[*Store]func() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.mu.members)
}
