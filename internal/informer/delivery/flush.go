package delivery

import (
	"context"

	"github.com/crdcache/crdcache/internal/queue"
)

// Flush waits for the notifications that were queued when it was started.
type Flush []flushMark

type flushMark struct {
	handler *Registration
	done    chan struct{}
}

// StartFlush marks the current end of each handler's queue. It does not wait.
func (h *Handlers) StartFlush() Flush {
	flush := make(Flush, 0, len(h.registered))
	for _, r := range h.registered {
		p := flushMark{handler: r, done: make(chan struct{})}
		r.Mark(func() { close(p.done) }) // a closed queue ignores it
		flush = append(flush, p)
	}
	return flush
}

// Wait waits until the handlers have processed all notifications that were queued when f was started. It
// returns ErrStopped if the informer has stopped and discarded some, or the context's cause.
func (f Flush) Wait(ctx context.Context) error {
	for _, p := range f {
		select {
		case <-p.done:
		case <-p.handler.finished:
			if p.isPending() {
				return ErrStopped
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// BusyHandlers returns the handlers that have not processed their notifications. They include handlers of a
// stopped informer that discarded notifications, but not removed handlers.
func (f Flush) BusyHandlers() []*Registration {
	var busy []*Registration
	for _, p := range f {
		if p.isPending() {
			busy = append(busy, p.handler)
		}
	}
	return busy
}

// isPending reports whether the handler, if it is not removed, has notifications of the flush left.
func (p flushMark) isPending() bool {
	// Check the end of the handler first: done does not change after it.
	removed := queue.IsClosed(p.handler.finished) && !queue.IsClosed(p.handler.config.Stopping)
	return !queue.IsClosed(p.done) && !removed && p.handler.Depth() > 0 // otherwise only the mark is left
}
