package store

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// Sweeper compresses, in the background, what nobody reads in the stores of a factory, and keeps them to a
// budget. What happens to an object is decided by Store.Sweep, by what the object remembers of its reads; the
// Sweeper decides when: right behind the fill of a store, every few seconds, and while the stores come to
// more than the budget. It works in slices of less than a millisecond, with pauses.
//
// It sweeps the stores that have joined it, with one goroutine for all, which runs while there are any. It is
// safe for concurrent use.
type Sweeper struct {
	budget int64

	mu struct {
		sync.Mutex
		members map[*Store]struct{}
		// filled are those of the members that have been filled since the last look.
		filled map[*Store]struct{}
		run    *run // nil: there are no members
	}
}

// run is one life of the goroutine.
type run struct {
	cancel context.CancelFunc
	ended  chan struct{}
	// wake holds a token when there is something in filled.
	wake chan struct{}
	// wanted has the calls of Compress.
	wanted chan request
}

// request is a call of Compress.
type request struct {
	store *Store
	done  chan struct{} // closed when it is done
}

// NewSweeper returns a Sweeper for stores that are to come to no more than budget bytes; zero: to any number.
func NewSweeper(budget int64) *Sweeper {
	s := &Sweeper{budget: budget}
	s.mu.members, s.mu.filled = map[*Store]struct{}{}, map[*Store]struct{}{}
	return s
}

// Join has a store swept, if it is adaptive, and count for the budget, if there is one, until leave is
// called. That waits for the goroutine if no store is left.
func (s *Sweeper) Join(member *Store) (leave func()) {
	adaptive := member.Adaptive() != nil
	if !adaptive && s.budget == 0 {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.members[member] = struct{}{}
	if s.mu.run == nil {
		s.startLocked()
	}
	if adaptive {
		member.OnFill(func() { s.fill(member) })
	}
	return func() { s.leave(member) }
}

func (s *Sweeper) startLocked() {
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{cancel: cancel, ended: make(chan struct{}), wake: make(chan struct{}, 1),
		wanted: make(chan request)}
	s.mu.run = r
	go func() { // ended by the last leave
		defer close(r.ended)
		(&round{sweeper: s, run: r}).loop(ctx)
	}()
}

// Compress compresses what is not known to be in use in a store, if it is adaptive and has joined, and
// returns when that is done, or with the context's cause. What is being compressed for others may take its
// time first.
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
	case r.wanted <- request{member, done}:
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
	var last *run
	if len(s.mu.members) == 0 {
		last, s.mu.run = s.mu.run, nil
	}
	s.mu.Unlock()
	if last != nil {
		last.cancel()
		<-last.ended
	}
}

// fill notes that a store has been filled. It does not wait.
func (s *Sweeper) fill(member *Store) {
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

// takeFilled returns the stores that have been filled since the last call.
func (s *Sweeper) takeFilled() []*Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	filled := slices.Collect(maps.Keys(s.mu.filled))
	clear(s.mu.filled)
	return filled
}

// members returns the stores that have joined.
func (s *Sweeper) members() []*Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.mu.members))
}
