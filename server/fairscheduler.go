package server

import (
	"container/list"
	"context"
	"runtime"
	"sync"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/crdcache/crdcache/readapi"
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
		waiting *list.List             // of *userSlices, the least recently served first
	}
}

// userSlices is guarded by the lock of fairScheduler.
type userSlices struct {
	name    string
	running int
	queue   *list.List // of chan struct{}, closed when the time slice begins
}

var _ readapi.Scheduler = (*fairScheduler)(nil)

func newFairScheduler() *fairScheduler {
	processors := runtime.GOMAXPROCS(0)
	f := &fairScheduler{totalSlots: processors, slotsPerUser: max(1, processors/2)}
	f.mu.users, f.mu.waiting = map[string]*userSlices{}, list.New()
	return f
}

func (f *fairScheduler) Begin(ctx context.Context) (end func(), err error) {
	name := ""
	if user, ok := apirequest.UserFrom(ctx); ok {
		name = user.GetName()
	}
	slices, begun, queueElement := f.enqueue(name)
	end = func() { f.end(slices) }
	select {
	case <-begun:
		return end, nil
	default:
	}
	select {
	case <-begun:
		return end, nil
	case <-ctx.Done():
		f.cancel(slices, begun, queueElement)
		return nil, context.Cause(ctx)
	}
}

// enqueue requests a time slice. It returns the user, a channel that is closed when the time slice begins,
// and the element in the user's queue.
func (f *fairScheduler) enqueue(name string) (user *userSlices, begun chan struct{},
	queueElement *list.Element) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if user = f.mu.users[name]; user == nil {
		user = &userSlices{name: name, queue: list.New()}
		f.mu.users[name] = user
	}
	begun = make(chan struct{})
	queueElement = user.queue.PushBack(begun)
	if user.queue.Len() == 1 {
		f.mu.waiting.PushBack(user)
	}
	f.startWaitingLocked()
	return user, begun, queueElement
}

func (f *fairScheduler) startWaitingLocked() {
	for f.mu.running < f.totalSlots {
		var next *list.Element
		for e := f.mu.waiting.Front(); e != nil; e = e.Next() {
			running := e.Value.(*userSlices).running
			if running < f.slotsPerUser && (next == nil || running < next.Value.(*userSlices).running) {
				next = e
			}
			if running == 0 {
				break // the minimum
			}
		}
		if next == nil {
			return
		}
		u := next.Value.(*userSlices)
		close(u.queue.Remove(u.queue.Front()).(chan struct{}))
		u.running++
		f.mu.running++
		if u.queue.Len() == 0 {
			f.mu.waiting.Remove(next)
		} else {
			f.mu.waiting.MoveToBack(next)
		}
	}
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
func (f *fairScheduler) cancel(user *userSlices, begun chan struct{}, queueElement *list.Element) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-begun:
		f.endLocked(user)
		return
	default:
	}
	user.queue.Remove(queueElement)
	if user.queue.Len() > 0 {
		return
	}
	for e := f.mu.waiting.Front(); e != nil; e = e.Next() {
		if e.Value == user {
			f.mu.waiting.Remove(e)
			break
		}
	}
	f.removeIfIdleLocked(user)
}

func (f *fairScheduler) removeIfIdleLocked(user *userSlices) {
	if user.running == 0 && user.queue.Len() == 0 {
		delete(f.mu.users, user.name)
	}
}
