package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Shutdown stops every informer and waits until all have ended or ctx has. In the latter case the error
// is a *ShutdownError. The factory can't be used again. Calling it again waits again. It must not be
// called from an event handler, a listener or a subscriber, whose return it would wait for.
func (f *Factory) Shutdown(ctx context.Context) error {
	all := f.shut()
	left := f.subscriptions.closeAll()
	f.cancel(errFactoryShut)
	if f.stopTypes != nil {
		f.stopTypes()
	}
	for _, e := range all {
		if e.cancel != nil {
			e.cancel(errFactoryShut)
		}
	}
	failure := &ShutdownError{}
	for _, e := range all {
		if !f.awaitEnd(ctx, e) {
			failure.Running = append(failure.Running, e.key.gvr)
			failure.Handlers = append(failure.Handlers, e.informer.busyHandlers()...)
		}
	}
	told := errors.Join(awaitAll(ctx, left), f.hub.Shut(ctx))
	if len(failure.Running) > 0 || told != nil {
		failure.Cause = context.Cause(ctx)
		return failure
	}
	return nil
}

// Done returns a channel that is closed when Shutdown is called. It is for users of a shared factory.
func (f *Factory) Done() <-chan struct{} { return f.ctx.Done() }

// busyHandlers returns the names of the handlers of a stopped informer that have not returned.
func (i *Informer) busyHandlers() []string {
	var busy []string
	for _, r := range i.core.Registrations() {
		select {
		case <-r.ShutdownChan():
		default:
			busy = append(busy, formatGVR(i.gvr)+": "+r.Name())
		}
	}
	return busy
}

// shut refuses new informers from now on, and returns all entries that have not ended.
func (f *Factory) shut() []*entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.shutdown = true
	var all []*entry
	for _, e := range f.mu.entries {
		e.stopLinger()
		if e.ctx == nil {
			all = append(all, e)
		}
	}
	for e := range f.mu.alive {
		all = append(all, e)
	}
	return sortedEntries(all)
}

// awaitEnd waits for the end of an informer. It returns false if ctx ends first. It stops an informer that
// was never started.
func (f *Factory) awaitEnd(ctx context.Context, e *entry) bool {
	if e.ctx == nil { // it will never be started
		e.informer.abandon(errFactoryShut)
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

// ShutdownError lists the informers and handlers that had not ended when the context of Shutdown ended.
type ShutdownError struct {
	// Running are the types whose informers have not ended, usually because a handler has not returned. It is
	// empty if only a listener or subscriber has not returned.
	Running []schema.GroupVersionResource
	// Handlers are the event handlers that have not returned, as "TYPE: NAME" (see status.Handler).
	Handlers []string
	// Cause is the cause of the context.
	Cause error
}

// Error lists the types and handlers in one line.
func (e *ShutdownError) Error() string {
	running := formatGVRs(e.Running)
	if running == "" {
		running = "a listener or subscriber"
	}
	if len(e.Handlers) > 0 {
		running += fmt.Sprintf(" (handlers that have not returned: %s)", strings.Join(e.Handlers, ", "))
	}
	return fmt.Sprintf("dynamicinformer: shutdown: still running: %s: %v", running, e.Cause)
}

// Unwrap returns the context's cause.
func (e *ShutdownError) Unwrap() error { return e.Cause }
