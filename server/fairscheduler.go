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
// time slice goes to the waiting user with the fewest running time slices; ties go to the user served least
// recently. If there are several processors, a user gets at most half of them, so that some remain for other
// work.
type fairScheduler struct {
	total, perUser int

	mu struct {
		sync.Mutex
		running int
		users   map[string]*slicesOfUser // users with running or waiting time slices
		waiting *list.List               // of *slicesOfUser, the least recently served first
	}
}

// slicesOfUser is guarded by the lock of fairScheduler.
type slicesOfUser struct {
	name    string
	running int
	queue   *list.List // of chan struct{}, closed when the time slice begins
}

var _ readapi.Scheduler = (*fairScheduler)(nil)

func newFairScheduler() *fairScheduler {
	processors := runtime.GOMAXPROCS(0)
	f := &fairScheduler{total: processors, perUser: max(1, processors/2)}
	f.mu.users, f.mu.waiting = map[string]*slicesOfUser{}, list.New()
	return f
}

func (f *fairScheduler) Begin(ctx context.Context) (end func(), err error) {
	name := ""
	if user, ok := apirequest.UserFrom(ctx); ok {
		name = user.GetName()
	}
	u, granted, position := f.enqueue(name)
	end = func() { f.end(u) }
	select {
	case <-granted:
		return end, nil
	default:
	}
	select {
	case <-granted:
		return end, nil
	case <-ctx.Done():
		f.cancel(u, granted, position)
		return nil, context.Cause(ctx)
	}
}

// enqueue returns the user, a channel that is closed when the time slice begins, and the element in the
// user's queue.
func (f *fairScheduler) enqueue(name string) (u *slicesOfUser, granted chan struct{},
	position *list.Element) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if u = f.mu.users[name]; u == nil {
		u = &slicesOfUser{name: name, queue: list.New()}
		f.mu.users[name] = u
	}
	granted = make(chan struct{})
	position = u.queue.PushBack(granted)
	if u.queue.Len() == 1 {
		f.mu.waiting.PushBack(u)
	}
	f.grantLocked()
	return u, granted, position
}

// grantLocked begins time slices while processors are free.
func (f *fairScheduler) grantLocked() {
	for f.mu.running < f.total {
		var next *list.Element
		for e := f.mu.waiting.Front(); e != nil; e = e.Next() {
			running := e.Value.(*slicesOfUser).running
			if running < f.perUser && (next == nil || running < next.Value.(*slicesOfUser).running) {
				next = e
			}
			if running == 0 {
				break // the minimum
			}
		}
		if next == nil {
			return
		}
		u := next.Value.(*slicesOfUser)
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

func (f *fairScheduler) end(u *slicesOfUser) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.endLocked(u)
}

func (f *fairScheduler) endLocked(u *slicesOfUser) {
	u.running--
	f.mu.running--
	f.grantLocked()
	f.forgetLocked(u)
}

// cancel removes a waiting time slice, or ends it if it has begun.
func (f *fairScheduler) cancel(u *slicesOfUser, granted chan struct{}, position *list.Element) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-granted:
		f.endLocked(u)
		return
	default:
	}
	u.queue.Remove(position)
	if u.queue.Len() > 0 {
		return
	}
	for e := f.mu.waiting.Front(); e != nil; e = e.Next() {
		if e.Value == u {
			f.mu.waiting.Remove(e)
			break
		}
	}
	f.forgetLocked(u)
}

func (f *fairScheduler) forgetLocked(u *slicesOfUser) {
	if u.running == 0 && u.queue.Len() == 0 {
		delete(f.mu.users, u.name)
	}
}
