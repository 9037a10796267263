package soak_test

import (
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// requests counts what is asked of the API server about some resources: whole objects of all namespaces, and
// not what visitors ask for.
type requests struct {
	resources map[string]bool

	mu struct {
		sync.Mutex
		asked
	}
}

// asked is how many lists, watches that begin with a list, and watches were sent, answered or not.
type asked struct{ Lists, WatchLists, Watches int }

// initial are those that have the server send all objects.
func (a asked) initial() int { return a.Lists + a.WatchLists }

// counting returns a copy of config whose requests are counted.
func counting(config *rest.Config, types []*kind) (*rest.Config, *requests) {
	r := &requests{resources: map[string]bool{}}
	for _, k := range types {
		r.resources[k.gvr.Resource] = true
	}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next: next, requests: r} })
	return config, r
}

func (r *requests) sent() asked {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.asked
}

type counter struct {
	next     http.RoundTripper
	requests *requests
}

// RoundTrip implements http.RoundTripper.
func (c counter) RoundTrip(request *http.Request) (*http.Response, error) {
	path := request.URL.Path
	visitors := strings.Contains(path, "/namespaces/") || strings.Contains(request.Header.Get("Accept"),
		"PartialObjectMetadata")
	if request.Method == http.MethodGet && !visitors &&
		c.requests.resources[path[strings.LastIndex(path, "/")+1:]] {
		query := request.URL.Query()
		c.requests.mu.Lock()
		switch {
		case query.Get("watch") != "true" && query.Get("watch") != "1":
			if query.Get("continue") == "" { // further pages are of the same list
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

// WrappedRoundTripper lets client-go find the transport below.
func (c counter) WrappedRoundTripper() http.RoundTripper { return c.next }
