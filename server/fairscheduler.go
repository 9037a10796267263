package server

import (
	"container/list"
	"context"
	"runtime"
	"sync"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/crdcache/crdcache/readapi"
)

// fairScheduler shares the processors among users while it evaluates their selectors and queries. The next
// time slice goes to the waiting user with the fewest running time slices; ties go to the user served least
// recently. If there are several processors, a user gets at most half of them, because other work needs some,
// too.
type fairScheduler struct {
	total, perUser int

	mu struct {
		sync.Mutex
		running int
		users   map[string]*slicesOfUser // users with running or waiting time slices
		waiting *list.List               // of *slicesOfUser; the front was served least recently
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
	t := &fairScheduler{total: processors, perUser: max(1, processors/2)}
	t.mu.users, t.mu.waiting = map[string]*slicesOfUser{}, list.New()
	return t
}

func (t *fairScheduler) Begin(ctx context.Context) (end func(), err error) {
	name := ""
	if user, ok := apirequest.UserFrom(ctx); ok {
		name = user.GetName()
	}
	u, granted, position := t.enqueue(name)
	end = func() { t.end(u) }
	select {
	case <-granted:
		return end, nil
	default:
	}
	select {
	case <-granted:
		return end, nil
	case <-ctx.Done():
		t.cancel(u, granted, position)
		return nil, context.Cause(ctx)
	}
}

// enqueue returns the user, a channel that is closed when the time slice begins, and the element in the
// user's queue.
func (t *fairScheduler) enqueue(name string) (u *slicesOfUser, granted chan struct{},
	position *list.Element) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if u = t.mu.users[name]; u == nil {
		u = &slicesOfUser{name: name, queue: list.New()}
		t.mu.users[name] = u
	}
	granted = make(chan struct{})
	position = u.queue.PushBack(granted)
	if u.queue.Len() == 1 {
		t.mu.waiting.PushBack(u)
	}
	t.grantLocked()
	return u, granted, position
}

// grantLocked begins time slices while processors are free.
func (t *fairScheduler) grantLocked() {
	for t.mu.running < t.total {
		var next *list.Element
		for e := t.mu.waiting.Front(); e != nil; e = e.Next() {
			running := e.Value.(*slicesOfUser).running
			if running < t.perUser && (next == nil || running < next.Value.(*slicesOfUser).running) {
				next = e
			}
			if running == 0 {
				break // no user has fewer
			}
		}
		if next == nil {
			return
		}
		u := next.Value.(*slicesOfUser)
		close(u.queue.Remove(u.queue.Front()).(chan struct{}))
		u.running++
		t.mu.running++
		if u.queue.Len() == 0 {
			t.mu.waiting.Remove(next)
		} else {
			t.mu.waiting.MoveToBack(next)
		}
	}
}

func (t *fairScheduler) end(u *slicesOfUser) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endLocked(u)
}

func (t *fairScheduler) endLocked(u *slicesOfUser) {
	u.running--
	t.mu.running--
	t.grantLocked()
	t.forgetLocked(u)
}

// cancel removes a waiting time slice, or ends it if it has begun.
func (t *fairScheduler) cancel(u *slicesOfUser, granted chan struct{}, position *list.Element) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-granted:
		t.endLocked(u)
		return
	default:
	}
	u.queue.Remove(position)
	if u.queue.Len() > 0 {
		return
	}
	for e := t.mu.waiting.Front(); e != nil; e = e.Next() {
		if e.Value == u {
			t.mu.waiting.Remove(e)
			break
		}
	}
	t.forgetLocked(u)
}

func (t *fairScheduler) forgetLocked(u *slicesOfUser) {
	if u.running == 0 && u.queue.Len() == 0 {
		delete(t.mu.users, u.name)
	}
}
