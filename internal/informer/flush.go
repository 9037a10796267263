package informer

import "context"

// Flush waits until every handler has returned from everything that was queued before the call. It returns
// ErrStopped when the informer has stopped and thrown away some of that, or the context's cause. From inside
// a handler it cannot succeed.
func (i *Informer) Flush(ctx context.Context) error { return i.StartFlush().Wait(ctx) }

// Flush waits for what was queued when it was started.
type Flush []passage

// passage is a mark in a handler's queue.
type passage struct {
	handler *Registration
	passed  chan struct{}
}

// StartFlush marks what is queued now. It does not wait.
func (i *Informer) StartFlush() Flush {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.state == StateFresh {
		return nil // nothing was ever queued
	}
	flush := make(Flush, 0, len(i.mu.handlers))
	for _, r := range i.mu.handlers {
		p := passage{handler: r, passed: make(chan struct{})}
		r.queue.Push(marker(func() { close(p.passed) })) // a queue that is closed ignores it
		flush = append(flush, p)
	}
	return flush
}

// Wait is Informer.Flush for what was queued when the Flush was started.
func (f Flush) Wait(ctx context.Context) error {
	for _, p := range f {
		if err := p.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Busy returns the handlers that have not returned from everything yet.
func (f Flush) Busy() []*Registration {
	var busy []*Registration
	for _, p := range f {
		select {
		case <-p.passed:
		case <-p.handler.finished:
		default:
			if p.handler.Depth() > 0 { // or only the mark is left
				busy = append(busy, p.handler)
			}
		}
	}
	return busy
}

func (p passage) wait(ctx context.Context) error {
	select {
	case <-p.passed:
		return nil
	case <-p.handler.finished:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-p.passed:
		return nil
	default:
	}
	if p.handler.informer.IsStopped() && p.handler.Depth() > 0 {
		return ErrStopped
	}
	return nil // all was delivered before the stop, or the handler was removed
}
