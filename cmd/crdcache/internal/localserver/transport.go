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
	"sync/atomic"

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

	clusterOnly sync.Map              // the types that are read from the cluster
	served      sync.Map              // the types that the server has answered for
	serverErr   atomic.Pointer[error] // why the server is no longer used
}

// NewTransport returns a config whose clients use a Transport. It connects to the cluster on demand. note is
// called once for each type and source, with a text for the user.
func NewTransport(client *Client, config *rest.Config, note func(text string)) (*rest.Config, error) {
	serverURL, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	t := &Transport{client: client, basePath: strings.TrimSuffix(serverURL.Path, "/"), note: note,
		clusterTransport: sync.OnceValues(func() (http.RoundTripper, error) {
			return rest.TransportFor(config)
		})}
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
		if _, ok := t.clusterOnly.Load(request.GVR); ok {
			return nil
		}
		reason := whyUnanswerable(request, serverRequest)
		if serverErr := t.serverErr.Load(); serverErr != nil {
			reason = *serverErr
		}
		if reason != nil {
			t.markClusterOnly(request.GVR, reason)
			return nil
		}
	} else if path != "/api" && path != "/apis" || t.serverErr.Load() != nil {
		return nil
	}
	serverRequest.Header.Set(onlyCachedHeader, "true")
	response, err := t.client.readTransport.RoundTrip(serverRequest)
	if err == nil && response.Header.Get(live.ServedHeader) != "" {
		if isTypeRequest {
			t.noteOnce(&t.served, request.GVR, "the cache server")
		}
		return response
	}
	if err == nil {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<12))
		response.Body.Close()
		err = errors.New(strings.TrimSpace(string(text)))
	} else if r.Context().Err() == nil {
		err = errors.New("the cache server does not respond any more")
		t.serverErr.Store(&err)
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

func (t *Transport) markClusterOnly(gvr schema.GroupVersionResource, reason error) {
	t.noteOnce(&t.clusterOnly, gvr, fmt.Sprintf("the cluster: %v", reason))
}

func (t *Transport) noteOnce(noted *sync.Map, gvr schema.GroupVersionResource, source string) {
	_, wasNoted := noted.LoadOrStore(gvr, true)
	if !wasNoted && gvr != crd.GVR { // CRDs are read for the columns of tables
		t.note(fmt.Sprintf("%s is read from %s", discovery.Resource{GVR: gvr}, source))
	}
}
