package informer

import "context"

// Flush waits until every handler has returned from everything that was queued before the call. It returns
// ErrStopped when the informer stops first, or the context's cause. From inside a handler it cannot succeed.
func (i *Informer) Flush(ctx context.Context) error {
	waits, err := i.markAll()
	if err != nil {
		return err
	}
	for _, w := range waits {
		select {
		case <-w.passed:
		case <-w.handler.finished:
			if i.IsStopped() {
				return ErrStopped
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// passage is a mark in a handler's queue.
type passage struct {
	handler *Registration
	passed  chan struct{}
}

func (i *Informer) markAll() ([]passage, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch i.mu.state {
	case StateStopped:
		return nil, ErrStopped
	case StateFresh:
		return nil, nil // nothing was ever queued
	}
	waits := make([]passage, 0, len(i.mu.handlers))
	for _, r := range i.mu.handlers {
		w := passage{handler: r, passed: make(chan struct{})}
		r.queue.push(marker(func() { close(w.passed) }))
		waits = append(waits, w)
	}
	return waits, nil
}
