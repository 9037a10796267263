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
	"github.com/crdcache/crdcache/serving/readapi"
	"github.com/crdcache/crdcache/serving/readapi/live"
)

const onlyCachedHeader = "Crdcache-Only-Kept"

// Transport sends requests for cached types to the local cache server and all other requests to the cluster.
// Both have the same resource versions and continue tokens, so a client can switch in the middle of a list or
// watch. After a type was read from the cluster, it is not read from the server again: the cache could be
// older. Transport is safe for concurrent use.
type Transport struct {
	client           *Client
	basePath         string // path prefix of the cluster
	clusterTransport func() (http.RoundTripper, error)
	note             func(text string)

	mu struct {
		sync.Mutex
		// clusterOnly says why a type is read from the cluster. reportedServed has the types that the
		// server has answered for.
		clusterOnly    map[schema.GroupVersionResource]error
		reportedServed map[schema.GroupVersionResource]bool
		serverErr      error // why the server is no longer used
	}
}

// NewTransport returns a config whose clients use a Transport. It connects to the cluster on demand. note is
// called once for each type and source, with a text for the user.
func NewTransport(client *Client, config *rest.Config, note func(text string)) (*rest.Config, error) {
	serverURL, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	t := &Transport{client: client, basePath: strings.TrimSuffix(serverURL.Path, "/"), note: note}
	t.clusterTransport = sync.OnceValues(func() (http.RoundTripper,
		error) {
		return rest.TransportFor(config)
	})
	t.mu.clusterOnly, t.mu.reportedServed = map[schema.GroupVersionResource]error{},
		map[schema.GroupVersionResource]bool{}
	host := config.Host
	if !strings.Contains(host, "://") {
		host = serverURL.String() // has the scheme, which depends on the TLS fields
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
	if path, ok := strings.CutPrefix(r.URL.Path, t.basePath); ok && r.Method == http.MethodGet {
		if response := t.tryServer(r, path); response != nil {
			return response, nil
		}
	}
	if err := r.Context().Err(); err != nil {
		return nil, context.Cause(r.Context())
	}
	clusterTransport, err := t.clusterTransport()
	if err != nil {
		return nil, err
	}
	return clusterTransport.RoundTrip(r)
}

// tryServer returns the server's answer, or nil if the request must be sent to the cluster.
func (t *Transport) tryServer(r *http.Request, path string) *http.Response {
	serverURL := &url.URL{Scheme: "http", Host: "crdcache", Path: path, RawQuery: r.URL.RawQuery}
	serverRequest := r.Clone(r.Context())
	serverRequest.URL, serverRequest.Host = serverURL, ""
	serverRequest.Header.Del("Authorization") // the socket's owner is authenticated by the file system
	serverRequest.Header.Set("Cache-Control", "max-stale")
	request, isTypeRequest := readapi.ParseRequest(serverRequest)
	if isTypeRequest {
		if t.usesCluster(request.GVR) {
			return nil
		}
		if reason := whyUnanswerable(request, serverRequest); reason != nil {
			t.markClusterOnly(request.GVR, reason)
			return nil
		}
		serverRequest.Header.Set(onlyCachedHeader, "true")
	} else if path != "/api" && path != "/apis" || t.serverFailed() {
		return nil
	}
	response, err := t.client.readTransport.RoundTrip(serverRequest)
	if err == nil && response.Header.Get(live.ServedHeader) != "" {
		if isTypeRequest {
			t.markServed(request.GVR)
		}
		return response
	}
	if err == nil {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<12))
		response.Body.Close()
		err = errors.New(strings.TrimSpace(string(text)))
	} else if r.Context().Err() == nil {
		err = errors.New("the cache server does not respond any more")
		t.markServerFailed(err)
	}
	if isTypeRequest && r.Context().Err() == nil {
		t.markClusterOnly(request.GVR, err)
	}
	return nil
}

func whyUnanswerable(request readapi.Request, r *http.Request) error {
	if request.Subresource != "" {
		return errors.New("subresources are not cached")
	}
	// The server accepts index names as field selectors. The cluster rejects them.
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

func (t *Transport) serverFailed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.serverErr != nil
}

func (t *Transport) markServerFailed(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.serverErr = cause
}

func (t *Transport) usesCluster(gvr schema.GroupVersionResource) bool {
	t.mu.Lock()
	reason, serverErr := t.mu.clusterOnly[gvr], t.mu.serverErr
	t.mu.Unlock()
	if reason == nil && serverErr != nil {
		t.markClusterOnly(gvr, serverErr)
	}
	return reason != nil || serverErr != nil
}

func (t *Transport) markClusterOnly(gvr schema.GroupVersionResource, reason error) {
	t.mu.Lock()
	isFirst := t.mu.clusterOnly[gvr] == nil
	t.mu.clusterOnly[gvr] = reason
	t.mu.Unlock()
	if isFirst && gvr != crd.GVR {
		t.note(fmt.Sprintf("%s is read from the cluster: %v", typeName(gvr), reason))
	}
}

func (t *Transport) markServed(gvr schema.GroupVersionResource) {
	t.mu.Lock()
	isFirst := !t.mu.reportedServed[gvr]
	t.mu.reportedServed[gvr] = true
	t.mu.Unlock()
	if isFirst && gvr != crd.GVR { // read for the columns of tables
		t.note(fmt.Sprintf("%s is read from the cache server", typeName(gvr)))
	}
}

func typeName(gvr schema.GroupVersionResource) string { return discovery.Resource{GVR: gvr}.String() }
