package web

import (
	"context"
	"sync"
)

// shares bound what is under way at once: of each user, and of all together.
type shares struct {
	most int           // of a user
	all  chan struct{} // has room for those of all
	mu   struct {
		sync.Mutex
		users map[string]*share // of whom something is under way, or waits
	}
}

// share is that of a user.
type share struct {
	slots chan struct{}
	users int // of the share: under way, or waiting
}

func newShares(most, all int) *shares {
	s := &shares{most: most, all: make(chan struct{}, all)}
	s.mu.users = map[string]*share{}
	return s
}

// take waits for a place of a user until ctx ends; with a context that has ended it takes what is free. It is
// false where there is none, and otherwise release has to be called.
func (s *shares) take(ctx context.Context, user string) (release func(), ok bool) {
	own := s.join(user)
	if !enter(ctx, own.slots) {
		s.leave(user, own)
		return nil, false
	}
	if !enter(ctx, s.all) {
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

// enter takes one of some places, as soon as one is free; false where that is not before ctx ends.
func enter(ctx context.Context, places chan struct{}) bool {
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
		own = &share{slots: make(chan struct{}, s.most)}
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
