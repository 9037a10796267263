package server

import (
	"container/list"
	"context"
	"runtime"
	"sync"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/crdcache/crdcache/readapi"
)

// turns share the processors among users whose selectors and queries are evaluated. The next turn goes to
// the waiting user with the fewest running turns; ties go to the user served least recently. If there are
// several processors, a user gets at most half of them, because other work needs some, too.
type turns struct {
	total, perUser int

	mu struct {
		sync.Mutex
		running int
		users   map[string]*turnsOfUser // users with running or waiting turns
		waiting *list.List              // of *turnsOfUser; the front was served least recently
	}
}

// turnsOfUser is guarded by the lock of turns.
type turnsOfUser struct {
	name    string
	running int
	queue   *list.List // of chan struct{}, closed when the turn begins
}

var _ readapi.Turns = (*turns)(nil)

func newTurns() *turns {
	processors := runtime.GOMAXPROCS(0)
	t := &turns{total: processors, perUser: max(1, processors/2)}
	t.mu.users, t.mu.waiting = map[string]*turnsOfUser{}, list.New()
	return t
}

func (t *turns) Begin(ctx context.Context) (end func(), err error) {
	name := ""
	if user, ok := apirequest.UserFrom(ctx); ok {
		name = user.GetName()
	}
	u, begins, place := t.enqueue(name)
	end = func() { t.end(u) }
	select {
	case <-begins:
		return end, nil
	default:
	}
	select {
	case <-begins:
		return end, nil
	case <-ctx.Done():
		t.cancel(u, begins, place)
		return nil, context.Cause(ctx)
	}
}

// enqueue returns the user, a channel that is closed when the turn begins, and the element in the user's
// queue.
func (t *turns) enqueue(name string) (u *turnsOfUser, begins chan struct{}, place *list.Element) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if u = t.mu.users[name]; u == nil {
		u = &turnsOfUser{name: name, queue: list.New()}
		t.mu.users[name] = u
	}
	begins = make(chan struct{})
	place = u.queue.PushBack(begins)
	if u.queue.Len() == 1 {
		t.mu.waiting.PushBack(u)
	}
	t.grantLocked()
	return u, begins, place
}

// grantLocked begins turns while processors are free.
func (t *turns) grantLocked() {
	for t.mu.running < t.total {
		var next *list.Element
		for e := t.mu.waiting.Front(); e != nil; e = e.Next() {
			running := e.Value.(*turnsOfUser).running
			if running < t.perUser && (next == nil || running < next.Value.(*turnsOfUser).running) {
				next = e
			}
			if running == 0 {
				break // no user has fewer
			}
		}
		if next == nil {
			return
		}
		u := next.Value.(*turnsOfUser)
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

func (t *turns) end(u *turnsOfUser) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endLocked(u)
}

func (t *turns) endLocked(u *turnsOfUser) {
	u.running--
	t.mu.running--
	t.grantLocked()
	t.forgetLocked(u)
}

// cancel removes a waiting turn, or ends it if it has begun.
func (t *turns) cancel(u *turnsOfUser, begins chan struct{}, place *list.Element) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-begins:
		t.endLocked(u)
		return
	default:
	}
	u.queue.Remove(place)
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

func (t *turns) forgetLocked(u *turnsOfUser) {
	if u.running == 0 && u.queue.Len() == 0 {
		delete(t.mu.users, u.name)
	}
}

// counts returns the numbers of running and waiting turns of a user.
func (t *turns) counts(user string) (running, waiting int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if u := t.mu.users[user]; u != nil {
		return u.running, u.queue.Len()
	}
	return 0, 0
}
