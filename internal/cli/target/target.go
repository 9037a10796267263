package target

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// Target is an API server and how to read from it.
type Target struct {
	// Config is how to reach the server, without a client-side rate limit.
	Config *rest.Config
	// Namespace is the one to read; empty for all.
	Namespace string
	// Timeout bounds the wait for types to be found and synced; 0 waits without end.
	Timeout time.Duration

	errOut io.Writer
}

// HTTPClient returns the client that everything of a command shares.
func (t *Target) HTTPClient() (*http.Client, error) {
	client, err := rest.HTTPClientFor(t.Config)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return client, nil
}

// Limit ends the context when the time for waiting is up.
func (t *Target) Limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if t.Timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, t.Timeout)
}
