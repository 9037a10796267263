package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/informer"
)

// Flush waits until every event handler of the informer, including the handlers of subscriptions, has handled
// all events that were queued before the call. After WaitForSync these include the initial list. Flush does
// not wait for later events.
//
// It returns the cause of ctx, or ErrStopped if the informer stopped and dropped some of these events. Do not
// call it from an event handler: it would wait for its own return.
func (i *Informer) Flush(ctx context.Context) error { return i.core.Flush(ctx) }

// WaitForHandlers calls Informer.Flush for all informers of the factory: it waits until every event handler
// has handled all events that were queued before the call.
//
// The error is nil or a *HandlersError. Do not call it from an event handler.
func (f *Factory) WaitForHandlers(ctx context.Context) error {
	entries := f.entries()
	flushes := make([]informer.Flush, len(entries))
	for k, e := range entries {
		flushes[k] = e.informer.core.StartFlush()
	}
	failure := &HandlersError{}
	for k, e := range entries {
		err := flushes[k].Wait(ctx)
		if err == nil {
			continue
		}
		failure.Types = append(failure.Types, e.key.gvr)
		if failure.Cause == nil || errors.Is(failure.Cause, ErrStopped) { // the cause of ctx is more precise
			failure.Cause = err
		}
		for _, r := range flushes[k].Busy() {
			failure.Handlers = append(failure.Handlers,
				fmt.Sprintf("%s: %s (%d events)", formatGVR(e.key.gvr), r.Name(), r.Depth()))
		}
	}
	if failure.Cause != nil {
		return failure
	}
	return nil
}

// HandlersError lists event handlers that did not get, or did not handle, all events.
type HandlersError struct {
	// Types are the types of the handlers' informers.
	Types []schema.GroupVersionResource
	// Handlers are the handlers that have not returned, as "TYPE: NAME (N events)".
	Handlers []string
	// Cause is the cause of the context, or ErrStopped.
	Cause error
}

// Error lists the types and handlers in one line.
func (e *HandlersError) Error() string {
	which := formatGVRs(e.Types)
	if len(e.Handlers) > 0 {
		which = strings.Join(e.Handlers, ", ")
	}
	return fmt.Sprintf("dynamicinformer: waiting for event handlers: not done: %s: %v", which, e.Cause)
}

// Unwrap returns the cause.
func (e *HandlersError) Unwrap() error { return e.Cause }
