package status

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/naming"
)

// ShutdownError lists the informers and handlers that were still busy when the context of
// Factory.Shutdown, or of another call, ended.
type ShutdownError struct {
	// Running are the types with informers that have not ended, or that have dropped events. The usual cause
	// is a handler that has not returned. It is empty if only a listener or subscriber was busy.
	Running []schema.GroupVersionResource
	// Handlers are the event handlers that have not returned or have lost events, as "TYPE: NAME (N events)"
	// with the name of Handler and the number of events that it has not handled.
	Handlers []string
	// Cause is the cause of the context, or an error that says that another call has dropped events.
	Cause error
}

// Error lists the types and handlers in one line.
func (e *ShutdownError) Error() string {
	running := cmp.Or(naming.FormatTypes(e.Running), "a listener or subscriber")
	if len(e.Handlers) > 0 {
		running += fmt.Sprintf(" (handlers with remaining events: %s)", strings.Join(e.Handlers, ", "))
	}
	return fmt.Sprintf("dynamicinformer: shutdown: not finished: %s: %v", running, e.Cause)
}

// Unwrap returns the cause.
func (e *ShutdownError) Unwrap() error { return e.Cause }
