package dynamicinformer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/informer/delivery"
	"github.com/crdcache/crdcache/internal/queue"
)

// Shutdown stops the factory. It first waits until event handlers, subscribers and listeners have handled all
// events that were queued before the call, and then until all informers have ended. If ctx ends first,
// Shutdown drops the remaining events, stops everything without waiting, and returns a
// *status.ShutdownError. Concurrent calls then return a *status.ShutdownError too, after waiting. Call
// Shutdown before the context of Start ends, because an informer drops its events at that time.
//
// The factory cannot be used again. Further calls wait again. Do not call Shutdown from an event handler, a
// listener or a subscriber: it would wait for its own return.
func (f *Factory) Shutdown(ctx context.Context) error {
	dropsBefore := f.eventDrops.Load()
	entries := f.markShutdown()
	busy := f.drain(ctx, entries)
	subscriptions := f.closeSubscriptions()
	f.cancel(errFactoryShut)
	if f.stopTypes != nil {
		f.stopTypes()
	}
	failure := &status.ShutdownError{}
	for k, e := range entries {
		ended := f.awaitEnd(ctx, e)
		if !ended && busy[k] == nil {
			busy[k] = slices.DeleteFunc(e.informer.core.Registrations(),
				func(r *delivery.Registration) bool { return queue.IsClosed(r.ShutdownChan()) })
		}
		if !ended || len(busy[k]) > 0 {
			failure.Running = append(failure.Running, e.key.gvr)
		}
		for _, r := range busy[k] {
			failure.Handlers = append(failure.Handlers,
				fmt.Sprintf("%s: %s (%d events)", formatGVR(e.key.gvr), r.Name(), r.Depth()))
		}
	}
	notifyErr := f.aggregator.Drain(ctx)
	if notifyErr != nil {
		f.eventDrops.Add(1)
	}
	f.aggregator.Close()
	notifyErr = cmp.Or(notifyErr, awaitAll(ctx, subscriptions))
	f.leaveGroup()
	if len(failure.Running) > 0 || notifyErr != nil || f.eventDrops.Load() != dropsBefore {
		failure.Cause = cmp.Or(context.Cause(ctx),
			errors.New("another call of Shutdown or Close has dropped events"))
		return failure
	}
	return nil
}

// Close stops the factory. It drops queued events, and does not wait for handlers. The error is nil.
func (f *Factory) Close() error {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errFactoryShut)
	_ = f.Shutdown(ctx) // reports the handlers that still run
	return nil
}

// Done returns a channel that is closed when Shutdown or Close is called. Users of a shared factory need it.
func (f *Factory) Done() <-chan struct{} { return f.done }

func (f *Factory) isShutDown() bool { return queue.IsClosed(f.done) }

// markShutdown refuses new informers from now on, and returns all entries that have not ended.
func (f *Factory) markShutdown() []*entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.isShutDown() {
		close(f.done)
	}
	var entries []*entry
	for _, e := range f.mu.entries {
		e.stopLinger()
		if e.ctx == nil {
			entries = append(entries, e)
		}
	}
	return sortedEntries(slices.AppendSeq(entries, maps.Keys(f.mu.runningEntries)))
}

// drain cancels each informer once its handlers have handled all queued events, or ctx has ended. It returns
// the handlers of each informer that have not. It counts a drop before it cancels one with queued events.
func (f *Factory) drain(ctx context.Context, entries []*entry) [][]*delivery.Registration {
	busy := make([][]*delivery.Registration, len(entries))
	var drains sync.WaitGroup
	for k, e := range entries {
		if e.cancel == nil || e.ctx.Err() != nil {
			continue // not started, or stopped before
		}
		flush := e.informer.core.StartFlush()
		if len(flush) == 0 {
			e.cancel(errFactoryShut)
			continue
		}
		drains.Go(func() { // ended by the handlers or ctx
			err := flush.Wait(ctx)
			if err != nil && (e.ctx.Err() == nil || context.Cause(e.ctx) == errFactoryShut) {
				if busy[k] = flush.BusyHandlers(); len(busy[k]) > 0 {
					f.eventDrops.Add(1)
				}
			}
			e.cancel(errFactoryShut)
		})
	}
	drains.Wait()
	return busy
}

// awaitEnd waits for the end of an informer, which it stops if it never started; false if ctx ends first.
func (f *Factory) awaitEnd(ctx context.Context, e *entry) bool {
	if e.ctx == nil {
		e.informer.stopUnstarted(errFactoryShut)
		return true
	}
	select {
	case <-e.done:
		return true
	case <-ctx.Done():
		return queue.IsClosed(e.done)
	}
}
