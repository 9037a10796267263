package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/readapi"
	"github.com/crdcache/crdcache/readapi/live"
)

// onlyKept is the header of requests that are to be answered from what is kept, or not at all.
const onlyKept = "Crdcache-Only-Kept"

// Transport sends requests to the server as far as it keeps what they ask for, and all others to the cluster.
// Both have the same resource versions and continue tokens, so that a client may go from the one to the other
// in the middle of a list or a watch, as it does when the server ends. Once a type has been read from the
// cluster, it stays there: nothing that has been shown is taken back. It is made by NewTransport, and safe
// for concurrent use.
type Transport struct {
	client  *Client
	base    string // what paths of the cluster begin with
	cluster func() (http.RoundTripper, error)
	note    func(text string)

	mu struct {
		sync.Mutex
		// elsewhere says of types that are read from the cluster why; kept are those that the server has
		// answered for.
		elsewhere map[schema.GroupVersionResource]error
		kept      map[schema.GroupVersionResource]bool
		ended     error // why the server is not asked any more
	}
}

// NewTransport returns a config with which clients ask the server for what it keeps, and otherwise the
// cluster of config, with a connection that is made when it is needed. note is told once of each type who
// answers.
func NewTransport(client *Client, config *rest.Config, note func(text string)) (*rest.Config, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	t := &Transport{client: client, base: strings.TrimSuffix(base.Path, "/"), note: note}
	t.cluster = sync.OnceValues(func() (http.RoundTripper, error) { return rest.TransportFor(config) })
	t.mu.elsewhere, t.mu.kept = map[schema.GroupVersionResource]error{},
		map[schema.GroupVersionResource]bool{}
	host := config.Host
	if !strings.Contains(host, "://") {
		host = base.String() // whose scheme follows from what is left out here
	}
	return &rest.Config{
		Host: host, APIPath: config.APIPath, ContentConfig: config.ContentConfig, QPS: config.QPS,
		Burst: config.Burst, RateLimiter: config.RateLimiter,
		UserAgent: config.UserAgent, Timeout: config.Timeout, WarningHandler: config.WarningHandler,
		WarningHandlerWithContext: config.WarningHandlerWithContext,
		Transport:                 t,
	}, nil
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if path, ok := strings.CutPrefix(r.URL.Path, t.base); ok && r.Method == http.MethodGet {
		if response := t.ask(r, path); response != nil {
			return response, nil
		}
	}
	if err := r.Context().Err(); err != nil {
		return nil, context.Cause(r.Context())
	}
	cluster, err := t.cluster()
	if err != nil {
		return nil, err
	}
	return cluster.RoundTrip(r)
}

// ask returns what the server answers, or nil where the cluster has to be asked.
func (t *Transport) ask(r *http.Request, path string) *http.Response {
	to := &url.URL{Scheme: "http", Host: "crdcache", Path: path, RawQuery: r.URL.RawQuery}
	inner := r.Clone(r.Context())
	inner.URL, inner.Host = to, ""
	inner.Header.Del("Authorization") // it is the socket that says who asks
	inner.Header.Set("Cache-Control", "max-stale")
	asked, ofType := readapi.ParseRequest(inner)
	if ofType {
		if t.isElsewhere(asked.GVR) {
			return nil
		}
		if why := unanswerable(asked, inner); why != nil {
			t.leave(asked.GVR, why)
			return nil
		}
		inner.Header.Set(onlyKept, "true")
	} else if path != "/api" && path != "/apis" || t.hasEnded() {
		return nil
	}
	response, err := t.client.reads.RoundTrip(inner)
	if err == nil && response.Header.Get(live.ServedHeader) != "" {
		if ofType {
			t.use(asked.GVR)
		}
		return response
	}
	if err == nil {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<12))
		response.Body.Close()
		err = errors.New(strings.TrimSpace(string(text)))
	} else if r.Context().Err() == nil {
		err = errors.New("the server does not answer any more")
		t.end(err)
	}
	if ofType && r.Context().Err() == nil {
		t.leave(asked.GVR, err)
	}
	return nil
}

// unanswerable says why the server is not asked for something that it may keep.
func unanswerable(asked readapi.Request, r *http.Request) error {
	if asked.Subresource != "" {
		return errors.New("the server keeps no subresources")
	}
	// Its indexes are field selectors there, which the cluster does not know.
	selector, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		return err
	}
	for _, field := range selector.Requirements() {
		if field.Field != "metadata.name" && field.Field != "metadata.namespace" {
			return fmt.Errorf("the server knows no field selectors, such as %s", field.Field)
		}
	}
	return nil
}

func (t *Transport) hasEnded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.ended != nil
}

func (t *Transport) end(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.ended = why
}

// isElsewhere reports whether a type is read from the cluster.
func (t *Transport) isElsewhere(gvr schema.GroupVersionResource) bool {
	t.mu.Lock()
	why, ended := t.mu.elsewhere[gvr], t.mu.ended
	t.mu.Unlock()
	if why == nil && ended != nil {
		t.leave(gvr, ended)
	}
	return why != nil || ended != nil
}

// leave has a type be read from the cluster from now on.
func (t *Transport) leave(gvr schema.GroupVersionResource, why error) {
	t.mu.Lock()
	first := t.mu.elsewhere[gvr] == nil
	t.mu.elsewhere[gvr] = why
	t.mu.Unlock()
	if first && gvr != crd.GVR {
		t.note(fmt.Sprintf("%s is read from the cluster: %v", name(gvr), why))
	}
}

// use notes that the server answers for a type.
func (t *Transport) use(gvr schema.GroupVersionResource) {
	t.mu.Lock()
	first := !t.mu.kept[gvr]
	t.mu.kept[gvr] = true
	t.mu.Unlock()
	if first && gvr != crd.GVR { // which is read for the columns of tables
		t.note(fmt.Sprintf("%s is read from the server that keeps it", name(gvr)))
	}
}

func name(gvr schema.GroupVersionResource) string { return discovery.Resource{GVR: gvr}.String() }
