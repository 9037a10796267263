package informer

import (
	"context"

	"github.com/crdcache/crdcache/internal/store"
)

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

// Drain is Forget, and then Flush: an error of the latter means that the wait for the delivery ended early.
func (i *Informer) Drain(ctx context.Context) error {
	if err := i.Forget(); err != nil {
		return err
	}
	return i.Flush(ctx)
}

// Forget takes leave of what the past generation showed: the cache is emptied; each handler gets what is still
// queued for it and then, once for each object it was shown, an OnDelete with cache.DeletedFinalStateUnknown;
// and HasSynced turns false again, for the informer and its handlers, until the next generation's first list.
// The next generation may begin at once: what it delivers queues up behind.
//
// It fails with ErrRunning while a generation runs and with ErrStopped after the stop. It does not wait.
func (i *Informer) Forget() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, err := step(i.mu.state, inputDrain); err != nil {
		return err
	}
	changes := i.clearLocked()
	i.tellLocked(notifications(changes, false, false)...)
	if i.synced.Load().reached() {
		i.synced.Store(newSyncPoint())
		for _, r := range i.mu.handlers {
			r.synced.Store(newSyncPoint())
		}
	}
	return nil
}

// clearLocked empties the store.
func (i *Informer) clearLocked() []store.Change {
	for {
		if changes, ok := i.store.Replace(i.store.PrepareAll(nil), ""); ok {
			return changes // indexers may be added at any time, but hardly again and again
		}
	}
}
