package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/informer"
)

// Flush waits until every event handler of the informer, those of subscriptions included, has returned from
// everything that was queued for it before the call. After WaitForSync that is at least the initial list. It
// does not wait for what is queued meanwhile, and returns at once when nothing has been queued.
//
// The error is the cause of ctx, or ErrStopped when the informer has stopped and thrown away events of these.
// Flush must not be called from an event handler, whose return it would wait for.
func (i *Informer) Flush(ctx context.Context) error { return i.core.Flush(ctx) }

// WaitForHandlers is Informer.Flush for all informers of the factory: it waits until every event handler has
// returned from everything that was queued for it before the call. Who needs all events calls it before
// Shutdown, which throws away what waits:
//
//	_, err := factory.WaitForSync(ctx)
//	…
//	err = factory.WaitForHandlers(ctx)
//	…
//	err = factory.Shutdown(ctx)
//
// The error is nil when all have returned, and otherwise a *HandlersError. It must not be called from an
// event handler.
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
		if failure.Cause == nil || errors.Is(failure.Cause, ErrStopped) { // the end of ctx says more
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

// HandlersError reports event handlers that were not given everything, or have not returned from it.
type HandlersError struct {
	// Types are the types of their informers.
	Types []schema.GroupVersionResource
	// Handlers are the handlers that have not returned: each as the type, a colon, the handler's name and how
	// many events it has left.
	Handlers []string
	// Cause is the cause of the context that ended, or ErrStopped.
	Cause error
}

// Error names the types and the handlers.
func (e *HandlersError) Error() string {
	which := formatGVRs(e.Types)
	if len(e.Handlers) > 0 {
		which = strings.Join(e.Handlers, ", ")
	}
	return fmt.Sprintf("dynamicinformer: waiting for event handlers: not done: %s: %v", which, e.Cause)
}

// Unwrap returns the cause.
func (e *HandlersError) Unwrap() error { return e.Cause }
