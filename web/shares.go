package web

import (
	"context"
	"sync"
)

// shares limits concurrent work, per user and in total.
type shares struct {
	perUser int           // maximum per user
	all     chan struct{} // its capacity is the maximum in total
	mu      struct {
		sync.Mutex
		users map[string]*share // with running or waiting work
	}
}

// share is the work of one user.
type share struct {
	slots chan struct{}
	users int // number of running and waiting calls
}

func newShares(most, all int) *shares {
	s := &shares{perUser: most, all: make(chan struct{}, all)}
	s.mu.users = map[string]*share{}
	return s
}

// take waits for a slot until ctx ends. It returns false if none became free. Otherwise the caller must call
// release. If ctx has already ended, take does not wait, but still takes a free slot.
func (s *shares) take(ctx context.Context, user string) (release func(), ok bool) {
	own := s.join(user)
	if !acquire(ctx, own.slots) {
		s.leave(user, own)
		return nil, false
	}
	if !acquire(ctx, s.all) {
		<-own.slots
		s.leave(user, own)
		return nil, false
	}
	return func() {
		<-s.all
		<-own.slots
		s.leave(user, own)
	}, true
}

// acquire takes a slot; it returns false if none becomes free before ctx ends.
func acquire(ctx context.Context, places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
	}
	select {
	case places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *shares) join(user string) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.mu.users[user]
	if own == nil {
		own = &share{slots: make(chan struct{}, s.perUser)}
		s.mu.users[user] = own
	}
	own.users++
	return own
}

func (s *shares) leave(user string, own *share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(s.mu.users, user)
	}
}
