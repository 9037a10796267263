package soak_test

import (
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// requests counts the requests for full objects in all namespaces. Temporary informers send other requests.
type requests struct {
	resources map[string]bool

	mu struct {
		sync.Mutex
		requestCounts
	}
}

// requestCounts counts lists, watch-lists and watches, whether or not they were answered.
type requestCounts struct{ Lists, WatchLists, Watches int }

// countInitial counts the requests for all objects.
func (a requestCounts) countInitial() int { return a.Lists + a.WatchLists }

func countRequests(config *rest.Config, types []*kind) (*rest.Config, *requests) {
	r := &requests{resources: map[string]bool{}}
	for _, k := range types {
		r.resources[k.gvr.Resource] = true
	}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next: next, requests: r} })
	return config, r
}

func (r *requests) sent() requestCounts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.requestCounts
}

type counter struct {
	next     http.RoundTripper
	requests *requests
}

func (c counter) RoundTrip(request *http.Request) (*http.Response, error) {
	path := request.URL.Path
	temporary := strings.Contains(path, "/namespaces/") || strings.Contains(request.Header.Get("Accept"),
		"PartialObjectMetadata")
	if request.Method == http.MethodGet && !temporary &&
		c.requests.resources[path[strings.LastIndex(path, "/")+1:]] {
		query := request.URL.Query()
		c.requests.mu.Lock()
		switch {
		case query.Get("watch") != "true" && query.Get("watch") != "1":
			if query.Get("continue") == "" { // further pages belong to the same list
				c.requests.mu.Lists++
			}
		case query.Get("sendInitialEvents") == "true":
			c.requests.mu.WatchLists++
		default:
			c.requests.mu.Watches++
		}
		c.requests.mu.Unlock()
	}
	return c.next.RoundTrip(request)
}

// WrappedRoundTripper implements net.RoundTripperWrapper for client-go.
func (c counter) WrappedRoundTripper() http.RoundTripper { return c.next }
