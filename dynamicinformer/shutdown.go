package dynamicinformer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/informer"
)

// errDropped is the cause of a ShutdownError if another call has dropped events.
var errDropped = errors.New("another call of Shutdown or Close has dropped events")

// Shutdown stops the factory. It first waits until event handlers, subscribers and listeners have handled all
// events that were queued before the call, and then until all informers have ended. If ctx ends first,
// Shutdown drops the remaining events, stops everything without waiting, and returns a *ShutdownError.
// Concurrent calls then return a *ShutdownError too, after waiting. Call Shutdown before the context of Start
// ends, because an informer drops its events at that time.
//
// The factory cannot be used again. Further calls wait again. Do not call Shutdown from an event handler, a
// listener or a subscriber: it would wait for its own return.
func (f *Factory) Shutdown(ctx context.Context) error {
	drops := f.droppedShutdowns.Load()
	entries := f.markShutdown()
	busy := f.drain(ctx, entries)
	subscriptions := f.closeSubscriptions()
	f.cancel(errFactoryShut)
	if f.stopTypes != nil {
		f.stopTypes()
	}
	failure := &ShutdownError{}
	for k, e := range entries {
		ended := f.awaitEnd(ctx, e)
		if !ended && busy[k] == nil {
			busy[k] = e.informer.busyHandlers()
		}
		if !ended || len(busy[k]) > 0 {
			failure.Running = append(failure.Running, e.key.gvr)
		}
		for _, r := range busy[k] {
			failure.Handlers = append(failure.Handlers,
				fmt.Sprintf("%s: %s (%d events)", formatGVR(e.key.gvr), r.Name(), r.Depth()))
		}
	}
	notified := f.aggregator.Drain(ctx)
	if notified != nil {
		f.droppedShutdowns.Add(1)
	}
	f.aggregator.Close()
	notified = cmp.Or(notified, awaitAll(ctx, subscriptions))
	f.leaveGroup()
	if len(failure.Running) > 0 || notified != nil || f.droppedShutdowns.Load() != drops {
		failure.Cause = cmp.Or(context.Cause(ctx), errDropped)
		return failure
	}
	return nil
}

// Close stops the factory immediately. It drops queued events, and does not wait for running handlers. The
// error is always nil.
func (f *Factory) Close() error {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errFactoryShut)
	_ = f.Shutdown(ctx) // reports the handlers that still run
	return nil
}

// Done returns a channel that is closed when Shutdown or Close is called. It is for users of a shared
// factory.
func (f *Factory) Done() <-chan struct{} { return f.done }

func (f *Factory) isShutDown() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// markShutdown refuses new informers from now on, and returns all entries that have not ended.
func (f *Factory) markShutdown() []*entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.mu.shutdown {
		close(f.done)
	}
	f.mu.shutdown = true
	var entries []*entry
	for _, e := range f.mu.entries {
		e.stopLinger()
		if e.ctx == nil {
			entries = append(entries, e)
		}
	}
	for e := range f.mu.runningEntries {
		entries = append(entries, e)
	}
	return sortedEntries(entries)
}

// drain cancels each informer once its handlers have handled all queued events, or ctx has ended. It returns
// the handlers of each informer that have not. It counts a drop before it cancels an informer with queued
// events.
func (f *Factory) drain(ctx context.Context, entries []*entry) [][]*informer.Registration {
	busy := make([][]*informer.Registration, len(entries))
	var running sync.WaitGroup
	for k, e := range entries {
		if e.cancel == nil || e.ctx.Err() != nil {
			continue // not started, or stopped before
		}
		flush := e.informer.core.StartFlush()
		if len(flush) == 0 {
			e.cancel(errFactoryShut)
			continue
		}
		running.Go(func() { // ended by the handlers or ctx
			err := flush.Wait(ctx)
			if err != nil && (e.ctx.Err() == nil || context.Cause(e.ctx) == errFactoryShut) {
				if busy[k] = flush.Unprocessed(); len(busy[k]) > 0 {
					f.droppedShutdowns.Add(1)
				}
			}
			e.cancel(errFactoryShut)
		})
	}
	running.Wait()
	return busy
}

// busyHandlers returns the handlers of a stopped informer that have not returned.
func (i *Informer) busyHandlers() []*informer.Registration {
	var busy []*informer.Registration
	for _, r := range i.core.Registrations() {
		select {
		case <-r.ShutdownChan():
		default:
			busy = append(busy, r)
		}
	}
	return busy
}

// awaitEnd waits for the end of an informer. It returns false if ctx ends first. It stops an informer that
// was never started.
func (f *Factory) awaitEnd(ctx context.Context, e *entry) bool {
	if e.ctx == nil {
		e.informer.stopUnstarted(errFactoryShut)
		return true
	}
	select {
	case <-e.done:
		return true
	default:
	}
	select {
	case <-e.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// ShutdownError lists the informers and handlers that were not done when the context of Shutdown, or of
// another call, ended.
type ShutdownError struct {
	// Running are the types with informers that have not ended, or that have dropped events. The usual cause
	// is a handler that has not returned. It is empty if only a listener or subscriber was not done.
	Running []schema.GroupVersionResource
	// Handlers are the event handlers that have not returned or have lost events, as "TYPE: NAME (N events)"
	// with the name of status.Handler and the number of events that it has not handled.
	Handlers []string
	// Cause is the cause of the context, or an error that says that another call has dropped events.
	Cause error
}

// Error lists the types and handlers in one line.
func (e *ShutdownError) Error() string {
	running := formatGVRs(e.Running)
	if running == "" {
		running = "a listener or subscriber"
	}
	if len(e.Handlers) > 0 {
		running += fmt.Sprintf(" (handlers with remaining events: %s)", strings.Join(e.Handlers, ", "))
	}
	return fmt.Sprintf("dynamicinformer: shutdown: not finished: %s: %v", running, e.Cause)
}

// Unwrap returns the cause.
func (e *ShutdownError) Unwrap() error { return e.Cause }
