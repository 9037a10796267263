package localserver

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

// onlyCachedHeader is the header of requests that accept only cached answers.
const onlyCachedHeader = "Crdcache-Only-Kept"

// Transport sends requests for cached types to the local cache server and all others to the cluster. Both
// have the same resource versions and continue tokens, so a client can switch in the middle of a list or
// watch. After a type was read from the cluster it is not read from the server again, so that a client never
// goes back in time. Use NewTransport. It is safe for concurrent use.
type Transport struct {
	client  *Client
	base    string // path prefix of the cluster
	cluster func() (http.RoundTripper, error)
	note    func(text string)

	mu struct {
		sync.Mutex
		// clusterOnly has the reasons why types are read from the cluster. reportedServed has the types that
		// the server has answered for.
		clusterOnly    map[schema.GroupVersionResource]error
		reportedServed map[schema.GroupVersionResource]bool
		ended          error // why the server is no longer used
	}
}

// NewTransport returns a config whose clients use the local cache server for the types it caches, and the
// cluster for others. The connection to the cluster is opened on demand. note is called once for each type
// with the source of the answers.
func NewTransport(client *Client, config *rest.Config, note func(text string)) (*rest.Config, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	t := &Transport{client: client, base: strings.TrimSuffix(base.Path, "/"), note: note}
	t.cluster = sync.OnceValues(func() (http.RoundTripper, error) { return rest.TransportFor(config) })
	t.mu.clusterOnly, t.mu.reportedServed = map[schema.GroupVersionResource]error{},
		map[schema.GroupVersionResource]bool{}
	host := config.Host
	if !strings.Contains(host, "://") {
		host = base.String() // its scheme depends on the fields that are dropped here
	}
	return &rest.Config{
		Host: host, APIPath: config.APIPath, ContentConfig: config.ContentConfig, QPS: config.QPS,
		Burst: config.Burst, RateLimiter: config.RateLimiter,
		UserAgent: config.UserAgent, Timeout: config.Timeout, WarningHandler: config.WarningHandler,
		WarningHandlerWithContext: config.WarningHandlerWithContext,
		Transport:                 t,
	}, nil
}

func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if path, ok := strings.CutPrefix(r.URL.Path, t.base); ok && r.Method == http.MethodGet {
		if response := t.tryServer(r, path); response != nil {
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

// tryServer returns the server's answer, or nil if the cluster must be asked.
func (t *Transport) tryServer(r *http.Request, path string) *http.Response {
	to := &url.URL{Scheme: "http", Host: "crdcache", Path: path, RawQuery: r.URL.RawQuery}
	inner := r.Clone(r.Context())
	inner.URL, inner.Host = to, ""
	inner.Header.Del("Authorization") // the socket's owner is authenticated by the file system
	inner.Header.Set("Cache-Control", "max-stale")
	request, ofType := readapi.ParseRequest(inner)
	if ofType {
		if t.usesCluster(request.GVR) {
			return nil
		}
		if why := whyUnanswerable(request, inner); why != nil {
			t.useCluster(request.GVR, why)
			return nil
		}
		inner.Header.Set(onlyCachedHeader, "true")
	} else if path != "/api" && path != "/apis" || t.hasEnded() {
		return nil
	}
	response, err := t.client.reads.RoundTrip(inner)
	if err == nil && response.Header.Get(live.ServedHeader) != "" {
		if ofType {
			t.noteServed(request.GVR)
		}
		return response
	}
	if err == nil {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<12))
		response.Body.Close()
		err = errors.New(strings.TrimSpace(string(text)))
	} else if r.Context().Err() == nil {
		err = errors.New("the cache server does not respond any more")
		t.stopUsing(err)
	}
	if ofType && r.Context().Err() == nil {
		t.useCluster(request.GVR, err)
	}
	return nil
}

// whyUnanswerable returns why the server cannot answer a request for a type.
func whyUnanswerable(request readapi.Request, r *http.Request) error {
	if request.Subresource != "" {
		return errors.New("subresources are not cached")
	}
	// The server would accept index names as field selectors, which the cluster rejects.
	selector, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		return err
	}
	for _, field := range selector.Requirements() {
		if field.Field != "metadata.name" && field.Field != "metadata.namespace" {
			return fmt.Errorf("the cache server does not support the field selector %s", field.Field)
		}
	}
	return nil
}

func (t *Transport) hasEnded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.ended != nil
}

func (t *Transport) stopUsing(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.ended = cause
}

// usesCluster reports whether a type is read from the cluster.
func (t *Transport) usesCluster(gvr schema.GroupVersionResource) bool {
	t.mu.Lock()
	reason, ended := t.mu.clusterOnly[gvr], t.mu.ended
	t.mu.Unlock()
	if reason == nil && ended != nil {
		t.useCluster(gvr, ended)
	}
	return reason != nil || ended != nil
}

// useCluster reads a type from the cluster from now on.
func (t *Transport) useCluster(gvr schema.GroupVersionResource, reason error) {
	t.mu.Lock()
	first := t.mu.clusterOnly[gvr] == nil
	t.mu.clusterOnly[gvr] = reason
	t.mu.Unlock()
	if first && gvr != crd.GVR {
		t.note(fmt.Sprintf("%s is read from the cluster: %v", typeName(gvr), reason))
	}
}

// noteServed records that the server answers for a type.
func (t *Transport) noteServed(gvr schema.GroupVersionResource) {
	t.mu.Lock()
	first := !t.mu.reportedServed[gvr]
	t.mu.reportedServed[gvr] = true
	t.mu.Unlock()
	if first && gvr != crd.GVR { // read for the columns of tables
		t.note(fmt.Sprintf("%s is read from the cache server", typeName(gvr)))
	}
}

func typeName(gvr schema.GroupVersionResource) string { return discovery.Resource{GVR: gvr}.String() }
