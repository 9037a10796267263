package harness

import (
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"testing"

	"k8s.io/client-go/rest"
)

// ThroughProxy returns a configuration that reaches the API server through a reverse proxy for HTTP/1.1. The
// handlers in boxes wrap the proxy, the first one outermost.
func ThroughProxy(t testing.TB, boxes ...func(http.Handler) http.Handler) *rest.Config {
	t.Helper()
	config := Config(t)
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	var handler http.Handler = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport,
		FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), // watches are interrupted often
	}
	for _, box := range slices.Backward(boxes) {
		handler = box(handler)
	}
	front := NewTLSServer(t, handler)
	return &rest.Config{Host: front.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: front.CA}}
}
