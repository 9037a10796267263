package informer

import (
	"sync"
	"sync/atomic"
)

// syncPoint is reached once, when a first full list has been stored (for an informer) or delivered (for a
// handler).
type syncPoint struct {
	once sync.Once
	done chan struct{}
}

func newSyncPoint() *syncPoint { return &syncPoint{done: make(chan struct{})} }

func (p *syncPoint) reach() { p.once.Do(func() { close(p.done) }) }

func (p *syncPoint) reached() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// checker is a cache.DoneChecker over the sync point that counts at the time of asking.
type checker struct {
	name    func() string
	current *atomic.Pointer[syncPoint]
}

// Name implements cache.DoneChecker.
func (c checker) Name() string { return c.name() }

// Done implements cache.DoneChecker.
func (c checker) Done() <-chan struct{} { return c.current.Load().done }
