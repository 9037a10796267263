package server

import (
	"context"
	"runtime"
	"slices"
	"sync"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/crdcache/crdcache/serving/readapi"
)

// fairScheduler divides the processors among the users whose selectors and queries are evaluated. The next
// time slice goes to the waiting user with the fewest running time slices, and among equal users to the one
// served least recently. A user gets at most half of several processors, so that some remain for other work.
type fairScheduler struct {
	totalSlots, slotsPerUser int

	mu struct {
		sync.Mutex
		running int
		users   map[string]*userSlices // users with running or waiting time slices
		waiting []*userSlices          // the least recently served first
	}
}

// userSlices is guarded by the lock of fairScheduler.
type userSlices struct {
	name    string
	running int
	queue   []chan struct{} // closed when the time slice begins
}

var _ readapi.Scheduler = (*fairScheduler)(nil)

func newFairScheduler() *fairScheduler {
	processors := runtime.GOMAXPROCS(0)
	f := &fairScheduler{totalSlots: processors, slotsPerUser: max(1, processors/2)}
	f.mu.users = map[string]*userSlices{}
	return f
}

func (f *fairScheduler) Begin(ctx context.Context) (end func(), err error) {
	name := ""
	if info, ok := apirequest.UserFrom(ctx); ok {
		name = info.GetName()
	}
	user, begun := f.enqueue(name)
	end = func() { f.end(user) }
	select {
	case <-begun:
		return end, nil
	default:
	}
	select {
	case <-begun:
		return end, nil
	case <-ctx.Done():
		f.cancel(user, begun)
		return nil, context.Cause(ctx)
	}
}

// enqueue requests a time slice. It returns the user, and a channel that is closed when it begins.
func (f *fairScheduler) enqueue(name string) (user *userSlices, begun chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if user = f.mu.users[name]; user == nil {
		user = &userSlices{name: name}
		f.mu.users[name] = user
	}
	begun = make(chan struct{})
	if user.queue = append(user.queue, begun); len(user.queue) == 1 {
		f.mu.waiting = append(f.mu.waiting, user)
	}
	f.startWaitingLocked()
	return user, begun
}

func (f *fairScheduler) startWaitingLocked() {
	for f.mu.running < f.totalSlots {
		var next *userSlices
		for _, user := range f.mu.waiting {
			if user.running < f.slotsPerUser && (next == nil || user.running < next.running) {
				next = user
			}
			if user.running == 0 {
				break // the minimum
			}
		}
		if next == nil {
			return
		}
		close(next.queue[0])
		next.queue = next.queue[1:]
		next.running++
		f.mu.running++
		f.removeWaitingLocked(next)
		if len(next.queue) > 0 {
			f.mu.waiting = append(f.mu.waiting, next)
		}
	}
}

func (f *fairScheduler) removeWaitingLocked(user *userSlices) {
	f.mu.waiting = slices.DeleteFunc(f.mu.waiting, func(w *userSlices) bool { return w == user })
}

func (f *fairScheduler) end(user *userSlices) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.endLocked(user)
}

func (f *fairScheduler) endLocked(user *userSlices) {
	user.running--
	f.mu.running--
	f.startWaitingLocked()
	f.removeIfIdleLocked(user)
}

// cancel removes a time slice from the queue, or ends it if it has begun.
func (f *fairScheduler) cancel(user *userSlices, begun chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := slices.Index(user.queue, begun)
	if at < 0 {
		f.endLocked(user)
		return
	}
	if user.queue = slices.Delete(user.queue, at, at+1); len(user.queue) == 0 {
		f.removeWaitingLocked(user)
		f.removeIfIdleLocked(user)
	}
}

func (f *fairScheduler) removeIfIdleLocked(user *userSlices) {
	if user.running == 0 && len(user.queue) == 0 {
		delete(f.mu.users, user.name)
	}
}
