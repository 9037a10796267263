package informer

import (
	"context"
	"time"

	"k8s.io/klog/v2"
)

// minResyncPeriod is the shortest resync period of a handler.
const minResyncPeriod = time.Second

// planResyncsLocked sets the resync period of a new handler. A handler that is added before the start, or
// that has moved from another informer, can shorten the check period.
func (i *Informer) planResyncsLocked(r *Registration) {
	if r.requestedPeriod > 0 && r.requestedPeriod < minResyncPeriod {
		r.logger.Info("Raising the resync period to the minimum", "requested", r.requestedPeriod,
			"minimum", minResyncPeriod)
		r.requestedPeriod = minResyncPeriod
	}
	if r.requestedPeriod > 0 && r.requestedPeriod < i.mu.resyncCheckPeriod {
		if i.mu.state == StateNew || r.previous.Load() != nil {
			i.mu.resyncCheckPeriod = r.requestedPeriod
			if i.mu.resyncCheckChanged != nil {
				close(i.mu.resyncCheckChanged)
				i.mu.resyncCheckChanged = nil
			}
			for _, other := range i.mu.handlers {
				other.period = effectivePeriod(other.logger, other.requestedPeriod, i.mu.resyncCheckPeriod)
			}
		} else {
			r.logger.Info("Raising the resync period to the check period of the running informer", "requested",
				r.requestedPeriod, "check", i.mu.resyncCheckPeriod)
			r.requestedPeriod = i.mu.resyncCheckPeriod
		}
	}
	r.period = effectivePeriod(r.logger, r.requestedPeriod, i.mu.resyncCheckPeriod)
}

// effectivePeriod returns the resync period for a requested period and a check period.
func effectivePeriod(logger klog.Logger, requested, check time.Duration) time.Duration {
	switch {
	case requested == 0:
		return 0
	case check == 0:
		logger.Info("Ignoring the resync period, because this informer does no resyncs",
			"requested", requested)
		return 0
	default:
		return max(requested, check)
	}
}

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
	if i.mu.resyncCheckChanged == nil && i.mu.resyncCheckPeriod > 0 {
		i.mu.resyncCheckChanged = make(chan struct{})
	}
	return i.mu.resyncCheckPeriod, i.mu.resyncCheckChanged
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

// Resync implements cache.ReflectorStore. The handlers that are due receive an update for each object.
func (g *incarnation) Resync() error {
	i := g.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != g {
		return ErrIncarnationOver
	}
	items := i.store.Snapshot().Items()
	batch := make([]notification, len(items))
	for k, item := range items {
		batch[k] = newUpdate(item, item, true)
	}
	i.notifyLocked(nil, batch...)
	return nil
}

// shouldResync determines the handlers that are due for a resync, and reports whether there are any.
func (g *incarnation) shouldResync() bool {
	i := g.informer
	now := i.clock.Now()
	i.mu.Lock()
	defer i.mu.Unlock()
	due := false
	if i.mu.current != g {
		return false
	}
	for _, r := range i.mu.handlers {
		if r.inResync = r.period > 0 && !now.Before(r.nextResync); r.inResync {
			due, r.nextResync = true, now.Add(r.period)
		}
	}
	return due
}
