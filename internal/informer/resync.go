package informer

import (
	"context"
	"time"

	"github.com/crdcache/crdcache/internal/informer/delivery"
	"github.com/crdcache/crdcache/internal/naming"
)

// startResyncs starts the resyncs of handlers, until ctx ends. Reflectors do no resyncs, because a partition
// can end, or never list.
func (g *incarnation) startResyncs(ctx context.Context) {
	check, changed := g.informer.resyncCheckPeriod()
	if check <= 0 {
		return
	}
	g.informer.workers.Go(func() { // ended by ctx
		for ctx.Err() == nil {
			g.resyncEvery(ctx, check, changed)
			check, changed = g.informer.resyncCheckPeriod()
		}
	})
}

// resyncCheckPeriod returns the check period, and a channel that is closed when it changes.
func (i *Informer) resyncCheckPeriod() (check time.Duration, changed <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.mu.handlers.Resyncs.Period, i.mu.handlers.Resyncs.Changed()
}

// resyncEvery notifies the handlers that are due, until the check period changes or ctx ends.
func (g *incarnation) resyncEvery(ctx context.Context, check time.Duration, changed <-chan struct{}) {
	ticker := g.informer.clock.NewTicker(check)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			return
		case <-ticker.C():
		}
		if g.shouldResync() {
			_ = g.Resync() // ErrIncarnationOver, just before ctx ends
		}
	}
}

// Resync notifies the handlers: those that are due receive an update for each object.
func (g *incarnation) Resync() error {
	i := g.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != g {
		return ErrIncarnationOver
	}
	i.notifyLocked(nil, naming.Map(i.store.Snapshot().Items(),
		func(item Item) delivery.Notification { return delivery.Updated(item, item, true) })...)
	return nil
}

// shouldResync determines the handlers that are due for a resync, and reports whether there are any.
func (g *incarnation) shouldResync() bool {
	i := g.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.mu.current == g && i.mu.handlers.SelectDue(i.clock.Now())
}
