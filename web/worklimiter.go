package web

import (
	"context"
	"sync"
)

// workLimiter limits concurrent work, per user and in total.
type workLimiter struct {
	perUser    int           // maximum per user
	totalSlots chan struct{} // its capacity is the maximum in total
	mu         struct {
		sync.Mutex
		users map[string]*userSlots // with running or waiting work
	}
}

type userSlots struct {
	slots chan struct{}
	refs  int // number of running and waiting calls
}

func newWorkLimiter(perUser, all int) *workLimiter {
	s := &workLimiter{perUser: perUser, totalSlots: make(chan struct{}, all)}
	s.mu.users = map[string]*userSlots{}
	return s
}

// acquire waits for a slot until ctx ends. It returns false if none became free. Otherwise the caller must
// call release. If ctx has already ended, acquire does not wait, but still takes a free slot.
func (s *workLimiter) acquire(ctx context.Context, user string) (release func(), ok bool) {
	own := s.retain(user)
	if !acquire(ctx, own.slots) {
		s.releaseUser(user, own)
		return nil, false
	}
	if !acquire(ctx, s.totalSlots) {
		<-own.slots
		s.releaseUser(user, own)
		return nil, false
	}
	return func() {
		<-s.totalSlots
		<-own.slots
		s.releaseUser(user, own)
	}, true
}

// acquire takes a slot; it returns false if none becomes free before ctx ends.
func acquire(ctx context.Context, slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	default:
	}
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *workLimiter) retain(user string) *userSlots {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.mu.users[user]
	if own == nil {
		own = &userSlots{slots: make(chan struct{}, s.perUser)}
		s.mu.users[user] = own
	}
	own.refs++
	return own
}

func (s *workLimiter) releaseUser(user string, own *userSlots) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own.refs--; own.refs == 0 {
		delete(s.mu.users, user)
	}
}
