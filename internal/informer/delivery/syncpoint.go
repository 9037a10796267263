package delivery

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/crdcache/crdcache/internal/queue"
)

// SyncPoint is reached once, when the first list has been stored (informer) or delivered (handler). It is
// safe for concurrent use.
type SyncPoint struct {
	once sync.Once
	done chan struct{}
}

func NewSyncPoint() *SyncPoint { return &SyncPoint{done: make(chan struct{})} }

// MarkReached marks the point as reached. It is idempotent.
func (p *SyncPoint) MarkReached() { p.once.Do(func() { close(p.done) }) }

// Done returns a channel that is closed when the point is reached.
func (p *SyncPoint) Done() <-chan struct{} { return p.done }

func (p *SyncPoint) Reached() bool { return queue.IsClosed(p.done) }

// Wait waits until the point is reached. It returns true if end is closed first, or the cause of ctx.
func (p *SyncPoint) Wait(ctx context.Context, end <-chan struct{}) (ended bool, err error) {
	if p.Reached() {
		return false, nil
	}
	select {
	case <-p.done:
		return false, nil
	case <-end:
		return !p.Reached(), nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// Checker is a cache.DoneChecker of the current sync point.
type Checker struct {
	NameOf  func() string
	Current *atomic.Pointer[SyncPoint]
}

func (c Checker) Name() string          { return c.NameOf() }
func (c Checker) Done() <-chan struct{} { return c.Current.Load().Done() }

var (
	// ErrStopped is returned if the informer has stopped.
	ErrStopped = errors.New("the informer has stopped")
	// ErrHandlerRemoved is returned to a caller that waits for a handler that is removed.
	ErrHandlerRemoved = errors.New("the event handler was removed")
)
