package dynamicinformer

import (
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/health"
)

// ListenerHandle is the registration of a listener. It is safe for concurrent use.
type ListenerHandle struct{ inner *health.ListenerHandle }

// Close removes the listener and drops its queued calls. It does not wait for a running call (Done does), so
// the listener itself may call it. Further calls do nothing.
func (l *ListenerHandle) Close() { l.inner.Close() }

// Done returns a channel that is closed when the listener is no longer called, after Close or Shutdown.
func (l *ListenerHandle) Done() <-chan struct{} { return l.inner.Done() }

// Depth returns the number of queued calls, including the running one.
func (l *ListenerHandle) Depth() int { return l.inner.Depth() }

// AddListener adds a listener. After Shutdown it returns ErrShutdown.
func (f *Factory) AddListener(listener status.Listener) (*ListenerHandle, error) {
	inner, err := f.hub.Add(listener)
	if err != nil {
		return nil, err
	}
	return &ListenerHandle{inner}, nil
}
