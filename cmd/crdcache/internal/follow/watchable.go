package follow

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// watchable finds the types that the server lists and refuses to watch. Their informers are as good as any other after
// the list, and go on asking; but a command that is there to show changes would show none. It is safe for concurrent
// use.
type watchable struct {
	// found gets a token when a type is found.
	found chan struct{}

	mu struct {
		sync.Mutex
		listed, watched map[schema.GroupVersionResource]bool
		// refused says of types that are listed and were never watched what the server said.
		refused map[schema.GroupVersionResource]error
	}
}

func newWatchable() *watchable {
	w := &watchable{found: make(chan struct{}, 1)}
	w.mu.listed, w.mu.watched = map[schema.GroupVersionResource]bool{}, map[schema.GroupVersionResource]bool{}
	w.mu.refused = map[schema.GroupVersionResource]error{}
	return w
}

// wrap notes the requests that a transport brings to an end.
func (w *watchable) wrap(client *http.Client) *http.Client {
	noting := *client
	next := client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	noting.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err == nil && response.StatusCode == http.StatusOK {
			w.note(r)
		}
		return response, err
	})
	return &noting
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (w *watchable) note(r *http.Request) {
	gvr, ok := collection(r.URL.Path)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.URL.Query().Get("watch") != "" {
		w.mu.watched[gvr] = true
		delete(w.mu.refused, gvr)
	} else {
		w.mu.listed[gvr] = true
	}
}

// collection is the type whose collection, of all namespaces or one, a path names. What comes before /api or /apis is
// the server's own prefix.
func collection(path string) (gvr schema.GroupVersionResource, ok bool) {
	if before, core, found := strings.Cut(path, "/api/"); found && !strings.Contains(before, "/apis") {
		gvr.Version, path, ok = strings.Cut(core, "/")
	} else if _, named, found := strings.Cut(path, "/apis/"); found {
		gvr.Group, path, _ = strings.Cut(named, "/")
		gvr.Version, path, ok = strings.Cut(path, "/")
	}
	if inside, found := strings.CutPrefix(path, "namespaces/"); found {
		if _, rest, found := strings.Cut(inside, "/"); found {
			path = rest
		}
	}
	gvr.Resource = path
	return gvr, ok && path != "" && !strings.Contains(path, "/")
}

// changed looks at the news of the state of a type, and reports whether they are that it is not watched.
func (w *watchable) changed(after status.Status) bool {
	if after.State != status.Degraded ||
		after.Reason != status.ReasonForbidden && after.Reason != status.ReasonVerbUnsupported {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.mu.listed[after.GVR] || w.mu.watched[after.GVR] {
		return false
	}
	cause := after.LastError
	if cause == nil {
		cause = errors.New(after.Message)
	}
	w.mu.refused[after.GVR] = fmt.Errorf(
		"%s may be listed but not watched, so that no change would be shown (dump prints the objects): %w", after.GVR.GroupResource(), cause)
	select {
	case w.found <- struct{}{}:
	default:
	}
	return true
}

// err joins what is wrong with the types, if it is all of them.
func (w *watchable) err(types []schema.GroupVersionResource) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, gvr := range types {
		if w.mu.refused[gvr] == nil {
			return nil
		}
		errs = append(errs, w.mu.refused[gvr])
	}
	return errors.Join(errs...)
}
