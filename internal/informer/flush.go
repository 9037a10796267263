package informer

import "context"

// Flush waits until the handlers have processed all notifications that were queued before the call. It
// returns ErrStopped if the informer has stopped and discarded some, or the context's cause. It cannot
// succeed when a handler calls it.
func (i *Informer) Flush(ctx context.Context) error { return i.StartFlush().Wait(ctx) }

// Flush waits for the notifications that were queued when it was started.
type Flush []flushMark

type flushMark struct {
	handler *Registration
	done    chan struct{}
}

// StartFlush marks the current end of each handler's queue. It does not wait.
func (i *Informer) StartFlush() Flush {
	i.mu.Lock()
	defer i.mu.Unlock()
	flush := make(Flush, 0, len(i.mu.handlers))
	for _, r := range i.mu.handlers {
		p := flushMark{handler: r, done: make(chan struct{})}
		r.push(newMark(func() { close(p.done) })) // a closed queue ignores it
		flush = append(flush, p)
	}
	return flush
}

// Wait is like Informer.Flush, for the notifications that were queued when f was started.
func (f Flush) Wait(ctx context.Context) error {
	for _, p := range f {
		if err := p.wait(ctx); err != nil {
			return err
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

func (p flushMark) wait(ctx context.Context) error {
	select {
	case <-p.done:
	case <-p.handler.finished:
		if p.isPending() {
			return ErrStopped
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// isPending reports whether the handler, if it is not removed, has notifications of the flush left.
func (p flushMark) isPending() bool {
	removed := false
	select {
	case <-p.handler.finished: // check this first: done does not change after it
		removed = !p.handler.informer.IsStopped()
	default:
	}
	select {
	case <-p.done:
		return false
	default:
		return !removed && p.handler.Depth() > 0 // otherwise only the mark is left
	}
}
