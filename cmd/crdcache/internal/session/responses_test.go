package session

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// TestSilentServer verifies that a command says once what it waits for, long before it gives up.
func TestSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var errOut strings.Builder
		target := &Target{IOStreams: genericiooptions.IOStreams{ErrOut: &errOut}, Timeout: time.Minute}
		target.responses.target = target
		transport := target.responses.wrap(RoundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, context.Cause(r.Context())
		}))
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://server/api/v1/pods", nil)
			if err == nil {
				_, err = transport.RoundTrip(request)
			}
			if cancel(); err == nil {
				t.Error("a silent server answered")
			}
		}
		const want = "warning: waiting: the API server does not answer GET http://server/api/v1/pods (--timeout 1m0s)\n"
		if errOut.String() != want {
			t.Errorf("stderr is %q, want %q", errOut.String(), want)
		}
	})
}
