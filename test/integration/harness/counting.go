package harness

import (
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// Request is the key of a counter in Requests.
type Request struct {
	// Verb is the HTTP method, or WATCH for a watch.
	Verb string
	// Path is the URL path without the query.
	Path string
}

// Requests counts the requests of a client, whether or not they are answered. It is safe for concurrent use.
type Requests struct {
	mu struct {
		sync.Mutex
		counts map[Request]int
	}
}

// CountRequests returns a copy of config that counts requests.
func CountRequests(config *rest.Config) (*rest.Config, *Requests) {
	requests := &Requests{}
	requests.mu.counts = map[Request]int{}
	counted := rest.CopyConfig(config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &counter{next: next, requests: requests}
	})
	return counted, requests
}

// Count returns the number of requests.
func (r *Requests) Count(verb, path string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.counts[Request{Verb: verb, Path: path}]
}

// All returns all counters.
func (r *Requests) All() map[Request]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.mu.counts)
}

// Reset sets all counters to zero.
func (r *Requests) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.mu.counts)
}

func (r *Requests) add(request Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.counts[request]++
}

type counter struct {
	next     http.RoundTripper
	requests *Requests
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	verb := r.Method
	if watch := r.URL.Query().Get("watch"); verb == http.MethodGet && (watch == "true" || watch == "1") {
		verb = "WATCH"
	}
	c.requests.add(Request{Verb: verb, Path: r.URL.Path})
	return c.next.RoundTrip(r)
}

// WrappedRoundTripper implements net.RoundTripperWrapper for client-go.
func (c *counter) WrappedRoundTripper() http.RoundTripper { return c.next }

// ConfigThroughProxy returns a configuration that reaches the API server through a reverse proxy for
// HTTP/1.1. The wrappers wrap the proxy, the first one outermost.
func ConfigThroughProxy(t testing.TB, wrappers ...func(http.Handler) http.Handler) *rest.Config {
	t.Helper()
	config := Config(t)
	target, err := url.Parse(config.Host)
	must(t, err)
	transport, err := rest.TransportFor(config)
	must(t, err)
	var handler http.Handler = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport,
		FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), // watches are interrupted often
	}
	for _, wrap := range slices.Backward(wrappers) {
		handler = wrap(handler)
	}
	proxyServer := NewTLSServer(t, handler)
	return &rest.Config{Host: proxyServer.URL, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: proxyServer.CA}}
}
