package requests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Connection is the transport to one cluster. Update replaces the address and the credentials. Afterwards, a
// request first verifies that the new connection leads to the same cluster. It is safe for concurrent use.
type Connection struct {
	// identifyToken holds a token during a request for the UID of the cluster.
	identifyToken chan struct{}
	watches       watchRecord

	mu struct {
		sync.Mutex
		current *endpoint
		// responded is set after the first successful response; uid is the cluster's UID, if it is readable.
		responded bool
		uid       types.UID
		// verified is the last endpoint that was verified to lead to the cluster.
		verified *endpoint
		watches  map[*switchableBody]struct{} // the open ones
	}
}

// endpoint is one address of a cluster, with credentials.
type endpoint struct {
	config    *rest.Config
	base      *url.URL
	transport http.RoundTripper
	// Connection.mu guards the following fields. identified is set after a response about the UID. rejection
	// is the reason why the endpoint is not used.
	identified bool
	rejection  error
}

// ErrOtherCluster is the error of requests after an Update that leads to another cluster.
var ErrOtherCluster = errors.New("the new connection leads to another cluster")

// errReplaced is the error of requests whose response arrives after Update, if it would be the first one.
// The watch that follows a list would use the new connection, which can lead to another cluster.
var errReplaced = errors.New("the connection was replaced before its first response")

// identifyTimeout limits a request for the UID of a cluster.
const identifyTimeout = 10 * time.Second

// NewConnection returns a connection. httpClient, which may be nil, takes precedence over config's transport.
func NewConnection(config *rest.Config, httpClient *http.Client) (*Connection, error) {
	at, err := newEndpoint(config, httpClient)
	if err != nil {
		return nil, err
	}
	c := &Connection{identifyToken: make(chan struct{}, 1)}
	c.mu.current, c.mu.verified, c.mu.watches = at, at, map[*switchableBody]struct{}{}
	return c, nil
}

func newEndpoint(config *rest.Config, httpClient *http.Client) (*endpoint, error) {
	if config == nil {
		return nil, errors.New("create connection: the REST config is nil")
	}
	config = rest.CopyConfig(config)
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("create connection: %w", err)
	}
	if httpClient == nil {
		if config.Proxy == nil && config.Transport == nil {
			// client-go then does not put the transport into its cache, which keeps all transports forever
			config.Proxy = http.ProxyFromEnvironment
		}
		if httpClient, err = rest.HTTPClientFor(config); err != nil {
			return nil, fmt.Errorf("create connection to %s: %w", base.Host, err)
		}
	}
	transport := cmp.Or(httpClient.Transport, http.DefaultTransport)
	return &endpoint{config: config, base: base, transport: transport}, nil
}

// Config returns a config for clients that share the connection. It has no credentials.
func (c *Connection) Config() *rest.Config {
	at := c.endpoint()
	config := rest.CopyConfig(at.config)
	shared := &rest.Config{
		Host: at.base.Scheme + "://" + at.base.Host, APIPath: config.APIPath,
		ContentConfig: config.ContentConfig, UserAgent: config.UserAgent, Timeout: config.Timeout,
		QPS: config.QPS, Burst: config.Burst, RateLimiter: config.RateLimiter,
		WarningHandler: config.WarningHandler, WarningHandlerWithContext: config.WarningHandlerWithContext,
		Transport: c,
	}
	return shared
}

func (c *Connection) endpoint() *endpoint {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.current
}

// UID returns the UID of the cluster; empty before the first response, or if it may not be read.
func (c *Connection) UID() types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.uid
}

// Update replaces the address and the credentials. Open watches end, so that they continue with the new ones.
// Other requests in progress are completed. They fail if no request has succeeded before, because nothing
// shows that the new connection leads to the same cluster. Update sends no request.
func (c *Connection) Update(config *rest.Config) error {
	next, err := newEndpoint(config, nil)
	if err != nil {
		return err
	}
	c.mu.Lock()
	before := c.mu.current
	c.mu.current = next
	if !c.mu.responded { // nothing depends on the earlier cluster, if its responses are refused from now on
		c.mu.verified = next
		before.identified, before.rejection = true, errReplaced
	}
	watches := slices.Collect(maps.Keys(c.mu.watches))
	c.mu.Unlock()
	for _, w := range watches {
		w.end()
	}
	utilnet.CloseIdleConnectionsFor(before.transport)
	return nil
}

// CloseIdleConnections closes the connections that no request uses.
func (c *Connection) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(c.endpoint().transport) }

// WrappedRoundTripper implements the interface by which client-go finds the underlying transport.
func (c *Connection) WrappedRoundTripper() http.RoundTripper { return c.endpoint().transport }

func (c *Connection) RoundTrip(request *http.Request) (*http.Response, error) {
	currentEndpoint := c.endpoint()
	if err := c.verify(request.Context(), currentEndpoint); err != nil {
		return nil, err
	}
	response, err := currentEndpoint.transport.RoundTrip(currentEndpoint.redirect(request))
	if err != nil {
		return response, err
	}
	if err := c.recordResponse(currentEndpoint, response); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	if request.URL.Query().Get("watch") != "" {
		response.Body = c.newSwitchableBody(currentEndpoint, request, response.Body)
	}
	return response, nil
}

// redirect returns the request with the address of the endpoint.
func (e *endpoint) redirect(request *http.Request) *http.Request {
	to := *request.URL
	if to.Scheme == e.base.Scheme && to.Host == e.base.Host && len(e.base.Path) <= 1 {
		return request
	}
	to.Scheme, to.Host = e.base.Scheme, e.base.Host
	if len(e.base.Path) > 1 {
		target := e.base.JoinPath(request.URL.EscapedPath())
		to.Path, to.RawPath = target.Path, target.RawPath
	}
	redirected := request.WithContext(request.Context())
	redirected.URL, redirected.Host = &to, ""
	return redirected
}

// recordResponse starts to identify the cluster after a response, if it is not known. It returns the reason
// why the endpoint is not used.
func (c *Connection) recordResponse(at *endpoint, response *http.Response) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at.rejection != nil || response.StatusCode >= http.StatusMultipleChoices {
		return at.rejection // an error, such as 401, has no objects
	}
	c.mu.responded = true
	if c.mu.uid == "" && !at.identified && len(c.identifyToken) == 0 {
		go func() { // ended by identifyTimeout
			ctx, cancel := context.WithTimeout(context.Background(), identifyTimeout)
			defer cancel()
			_ = c.identify(ctx, at) // the next response repeats a failed request
		}()
	}
	return nil
}

// verify returns an error if the endpoint cannot be verified to lead to the cluster of the earlier ones.
func (c *Connection) verify(ctx context.Context, at *endpoint) error {
	c.mu.Lock()
	verified := c.mu.verified == at
	c.mu.Unlock()
	if verified {
		return nil
	}
	return c.identify(ctx, at)
}

// identify reads the UID of the cluster at an endpoint, once. It returns an error if the request fails, and
// if it is another cluster than before. If either UID is unknown, the addresses decide.
func (c *Connection) identify(ctx context.Context, at *endpoint) error {
	select {
	case c.identifyToken <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-c.identifyToken }()
	c.mu.Lock()
	identified := at.identified
	c.mu.Unlock()
	var uid types.UID
	if !identified {
		var err error
		if uid, err = at.uid(ctx); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !identified {
		c.acceptLocked(at, uid)
	}
	return at.rejection
}

// acceptLocked records the UID of the cluster at an endpoint.
func (c *Connection) acceptLocked(at *endpoint, uid types.UID) {
	at.identified = true
	before := c.mu.verified
	switch {
	case uid != "" && c.mu.uid != "" && uid != c.mu.uid:
		at.rejection = fmt.Errorf("%w (UID %s) than before (UID %s): remove the cluster and add it again",
			ErrOtherCluster, uid, c.mu.uid)
	case (uid == "" || c.mu.uid == "") && before != at && before.identity() != at.identity():
		at.rejection = fmt.Errorf("cannot verify that %s is the same cluster as %s before, because the namespace "+
			"kube-system cannot be read: remove the cluster and add it again", at.base, before.base)
	default:
		c.mu.verified = at
		if uid != "" {
			c.mu.uid = uid
		}
	}
}

func (e *endpoint) uid(ctx context.Context) (types.UID, error) {
	config := rest.CopyConfig(e.config)
	config.RateLimiter, config.QPS = nil, -1
	client, err := dynamic.NewForConfigAndClient(config, &http.Client{Transport: e.transport})
	if err != nil {
		return "", err
	}
	return ClusterUID(ctx, client)
}

// identity identifies the server by its address and its certificate authority.
func (e *endpoint) identity() string { return endpointOf(e.config) }

// identity identifies the server of the last verified endpoint, from which the cached objects come.
func (c *Connection) identity() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.verified.identity()
}

// ClusterUID returns the UID of the namespace kube-system, which identifies the cluster. It is empty if the
// namespace does not exist or may not be read.
func ClusterUID(ctx context.Context, client dynamic.Interface) (types.UID, error) {
	namespaces := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	system, err := namespaces.Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", err
	}
	return system.GetUID(), nil
}

// switchableBody is the body of a watch, which ends when the connection is updated.
type switchableBody struct {
	io.ReadCloser
	connection *Connection
	attempt    *attempt // nil for other clients than ours
	ended      atomic.Bool
}

// newSwitchableBody registers the body of a response from an endpoint.
func (c *Connection) newSwitchableBody(from *endpoint, request *http.Request,
	body io.ReadCloser) io.ReadCloser {
	b := &switchableBody{ReadCloser: body, connection: c}
	b.attempt, _ = request.Context().Value(attemptKey{}).(*attempt)
	c.mu.Lock()
	c.mu.watches[b] = struct{}{}
	outdated := c.mu.current != from
	c.mu.Unlock()
	if outdated {
		b.end()
	}
	return b
}

// end ends the watch as if the server had closed it.
func (b *switchableBody) end() {
	if b.attempt != nil {
		b.attempt.reconnected.Store(true)
	}
	b.ended.Store(true)
	_ = b.Close() // readers get io.EOF
}

func (b *switchableBody) Read(data []byte) (int, error) {
	n, err := b.ReadCloser.Read(data)
	if err != nil && b.ended.Load() {
		err = io.EOF
	}
	return n, err
}

func (b *switchableBody) Close() error {
	b.connection.mu.Lock()
	delete(b.connection.mu.watches, b)
	b.connection.mu.Unlock()
	return b.ReadCloser.Close()
}
