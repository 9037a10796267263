package requests

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// TestOpenWatchesReleaseRequest verifies that the stream of a watch retains the response, but neither the
// request nor the headers, a kilobyte for each type. An idle watch ends with its context.
func TestOpenWatchesReleaseRequest(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	config := &rest.Config{Host: server.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}}
	var kept *http.Response
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			kept = response
			cancel() // the watch is open
			return response, err
		})
	})
	w := newInlineListWatch(t, config, nil, packedObjects)
	// or one derived from ctx
	_ = w.WatchInline(ctx, &metav1.ListOptions{ResourceVersion: "7"}, func(watch.Event) bool { return true })
	if kept == nil || kept.ProtoMajor != 2 || kept.Request != nil || kept.Header != nil {
		t.Errorf("the stream retains the response %+v, want no request and headers", kept)
	}
}
