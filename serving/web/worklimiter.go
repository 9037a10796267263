package web

import (
	"context"
	"sync"
)

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

// acquire waits for a slot until ctx ends. If it returns true, the caller must call release. If ctx has
// already ended, acquire takes a free slot or returns false immediately.
func (w *workLimiter) acquire(ctx context.Context, user string) (release func(), ok bool) {
	slots := w.addRef(user)
	if !acquire(ctx, slots.slots) {
		w.removeRef(user, slots)
		return nil, false
	}
	if !acquire(ctx, w.totalSlots) {
		<-slots.slots
		w.removeRef(user, slots)
		return nil, false
	}
	return func() {
		<-w.totalSlots
		<-slots.slots
		w.removeRef(user, slots)
	}, true
}

// acquire takes a slot. It returns false if no slot becomes free before ctx ends.
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

func (w *workLimiter) addRef(user string) *userSlots {
	w.mu.Lock()
	defer w.mu.Unlock()
	slots := w.mu.users[user]
	if slots == nil {
		slots = &userSlots{slots: make(chan struct{}, w.perUser)}
		w.mu.users[user] = slots
	}
	slots.refs++
	return slots
}

func (w *workLimiter) removeRef(user string, slots *userSlots) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slots.refs--; slots.refs == 0 {
		delete(w.mu.users, user)
	}
}
