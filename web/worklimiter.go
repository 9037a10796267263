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

func newWorkLimiter(perUser, total int) *workLimiter {
	s := &workLimiter{perUser: perUser, totalSlots: make(chan struct{}, total)}
	s.mu.users = map[string]*userSlots{}
	return s
}

// acquire waits for a slot until ctx ends. It returns false if none became free. Otherwise the caller must
// call release. If ctx has already ended, acquire does not wait, but still takes a free slot.
func (s *workLimiter) acquire(ctx context.Context, user string) (release func(), ok bool) {
	slots := s.retain(user)
	if !acquire(ctx, slots.slots) {
		s.releaseUser(user, slots)
		return nil, false
	}
	if !acquire(ctx, s.totalSlots) {
		<-slots.slots
		s.releaseUser(user, slots)
		return nil, false
	}
	return func() {
		<-s.totalSlots
		<-slots.slots
		s.releaseUser(user, slots)
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
	slots := s.mu.users[user]
	if slots == nil {
		slots = &userSlots{slots: make(chan struct{}, s.perUser)}
		s.mu.users[user] = slots
	}
	slots.refs++
	return slots
}

func (s *workLimiter) releaseUser(user string, slots *userSlots) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slots.refs--; slots.refs == 0 {
		delete(s.mu.users, user)
	}
}
