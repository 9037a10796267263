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
	slices, granted, position := f.enqueue(name)
	end = func() { f.end(slices) }
	select {
	case <-granted:
		return end, nil
	default:
	}
	select {
	case <-granted:
		return end, nil
	case <-ctx.Done():
		f.cancel(slices, granted, position)
		return nil, context.Cause(ctx)
	}
}

// enqueue returns the user, a channel that is closed when the time slice begins, and the element in the
// user's queue.
func (f *fairScheduler) enqueue(name string) (slices *userSlices, granted chan struct{},
	position *list.Element) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices = f.mu.users[name]; slices == nil {
		slices = &userSlices{name: name, queue: list.New()}
		f.mu.users[name] = slices
	}
	granted = make(chan struct{})
	position = slices.queue.PushBack(granted)
	if slices.queue.Len() == 1 {
		f.mu.waiting.PushBack(slices)
	}
	f.grantLocked()
	return slices, granted, position
}

// grantLocked begins time slices while processors are free.
func (f *fairScheduler) grantLocked() {
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

func (f *fairScheduler) end(slices *userSlices) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.endLocked(slices)
}

func (f *fairScheduler) endLocked(slices *userSlices) {
	slices.running--
	f.mu.running--
	f.grantLocked()
	f.forgetLocked(slices)
}

// cancel removes a waiting time slice, or ends it if it has begun.
func (f *fairScheduler) cancel(slices *userSlices, granted chan struct{}, position *list.Element) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-granted:
		f.endLocked(slices)
		return
	default:
	}
	slices.queue.Remove(position)
	if slices.queue.Len() > 0 {
		return
	}
	for e := f.mu.waiting.Front(); e != nil; e = e.Next() {
		if e.Value == slices {
			f.mu.waiting.Remove(e)
			break
		}
	}
	f.forgetLocked(slices)
}

func (f *fairScheduler) forgetLocked(slices *userSlices) {
	if slices.running == 0 && slices.queue.Len() == 0 {
		delete(f.mu.users, slices.name)
	}
}
