package harness

import (
	"maps"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
)

// Request is what Requests counts by.
type Request struct {
	// Verb is the HTTP method, or WATCH for a GET that watches.
	Verb string
	// Path is the path of the URL, without the query.
	Path string
}

// Requests counts the requests that were sent with a configuration, answered or not. It is safe for
// concurrent use.
type Requests struct {
	mu struct {
		sync.Mutex
		counts map[Request]int
	}
}

// Counting returns a copy of config whose requests are counted.
func Counting(config *rest.Config) (*rest.Config, *Requests) {
	requests := &Requests{}
	requests.mu.counts = map[Request]int{}
	counted := rest.CopyConfig(config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &counter{next: next, requests: requests}
	})
	return counted, requests
}

// Count returns how often a request was sent.
func (r *Requests) Count(verb, path string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.counts[Request{Verb: verb, Path: path}]
}

// All returns all counts.
func (r *Requests) All() map[Request]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.mu.counts)
}

// Reset begins again at zero.
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

// RoundTrip implements http.RoundTripper.
func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	verb := r.Method
	if watch := r.URL.Query().Get("watch"); verb == http.MethodGet && (watch == "true" || watch == "1") {
		verb = "WATCH"
	}
	c.requests.add(Request{Verb: verb, Path: r.URL.Path})
	return c.next.RoundTrip(r)
}

// WrappedRoundTripper lets client-go find the transport below.
func (c *counter) WrappedRoundTripper() http.RoundTripper { return c.next }
