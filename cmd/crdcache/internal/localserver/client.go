package localserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// Client sends requests to the local cache server of an identity.
type Client struct {
	dir      SocketDir
	identity string
	http     *http.Client
	reads    *http.Transport     // for objects; it times out only before the first byte
	warnings rest.WarningHandler // nil: warnings are discarded
}

// ErrNoServer is returned if no server listens.
var ErrNoServer = errors.New("no cache server runs for this cluster and user: start one with 'serve TYPE...'")

// controlTimeout bounds requests about the server itself.
const controlTimeout = 2 * time.Second

// responseTimeout bounds the wait for the start of an answer with objects.
const responseTimeout = 10 * time.Second

// errNotResponding is returned for a server that accepts connections but does not answer, such as a suspended
// process.
var errNotResponding = fmt.Errorf("the cache server did not respond within %v: is it suspended? If so, resume or kill its process",
	controlTimeout)

// NewClient returns a client for the server of the config's cluster and user. It returns ErrNoServer if there
// is no socket, and an error if the socket is not trusted. It does not connect to the server.
func NewClient(ctx context.Context, config *rest.Config) (*Client, error) {
	if _, err := os.Stat(SocketDirFor("").Dir); errors.Is(err, os.ErrNotExist) {
		return nil, ErrNoServer // no server was started yet: avoid running the exec plugin
	}
	identity, _, err := Identity(ctx, config)
	if err != nil {
		return nil, err
	}
	return newClient(config, identity, SocketDirFor(identity))
}

// NewClientAt is NewClient for a socket path. It asks the server for its identity.
func NewClientAt(ctx context.Context, config *rest.Config, socket string) (*Client, error) {
	identity, _, err := Identity(ctx, config)
	if err != nil {
		return nil, err
	}
	c, err := newClient(config, identity, socketDirAt(socket))
	if err == nil {
		_, err = c.Info(ctx)
	}
	if errors.Is(err, ErrNoServer) {
		return nil, fmt.Errorf("no cache server listens at %s", socket)
	}
	return c, err
}

func newClient(config *rest.Config, identity string, dir SocketDir) (*Client, error) {
	c := &Client{dir: dir, identity: identity, warnings: config.WarningHandler}
	if err := c.dir.check(); errors.Is(err, os.ErrNotExist) {
		return nil, ErrNoServer
	} else if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", c.dir.Socket())
		},
		DisableCompression: true,
	}
	c.http, c.reads = &http.Client{Transport: transport}, transport.Clone()
	c.reads.ResponseHeaderTimeout = responseTimeout
	return c, nil
}

func (c *Client) Info(ctx context.Context) (Info, error) {
	var info Info
	err := c.request(ctx, http.MethodGet, "/crdcache/server", nil, &info)
	if err == nil && info.Identity != c.identity {
		err = errOtherIdentity
	}
	return info, err
}

var errOtherIdentity = errors.New("the cache server belongs to another cluster or user")

// Socket returns the path of the server's socket.
func (c *Client) Socket() string { return c.dir.Socket() }

// Resolve resolves a type name.
func (c *Client) Resolve(ctx context.Context, name string) (Resolution, error) {
	var answer Resolution
	err := c.request(ctx, http.MethodGet, "/crdcache/types", url.Values{"name": {name}}, &answer)
	if err == nil && answer.Identity != c.identity {
		err = errOtherIdentity
	}
	return answer, err
}

// LoginLink requests a new login link for the server's web page.
func (c *Client) LoginLink(ctx context.Context) (string, error) {
	var link string
	return link, c.request(ctx, http.MethodPost, "/crdcache/link", nil, &link)
}

// Open requests a document. The caller can read it until ctx ends. If config is set, it must be the digest of
// the server's index configs, also when the answer begins: the server can reload them at any time.
func (c *Client) Open(ctx context.Context, path string, query url.Values, config string) (io.ReadCloser,
	error) {
	answer, err := c.do(ctx, http.MethodGet, path, query)
	if err != nil {
		return nil, err
	}
	if config != "" {
		info, err := c.Info(ctx)
		if err == nil && info.Config != config {
			err = ErrOtherConfig
		}
		if err != nil {
			answer.Body.Close()
			return nil, err
		}
	}
	return answer.Body, nil
}

// ErrOtherConfig is returned if a query needs the indexes of another config.
var ErrOtherConfig = errors.New("it has other index configs")

func (c *Client) request(ctx context.Context, method, path string, query url.Values, into any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, controlTimeout, errNotResponding)
	defer cancel()
	answer, err := c.do(ctx, method, path, query)
	if err == nil {
		defer answer.Body.Close()
		err = json.NewDecoder(answer.Body).Decode(into)
	}
	if err != nil && context.Cause(ctx) == errNotResponding {
		return errNotResponding
	}
	return err
}

// do sends a request and returns the successful answer. The caller must close its body.
func (c *Client) do(ctx context.Context, method, path string, query url.Values) (*http.Response, error) {
	to := url.URL{Scheme: "http", Host: "crdcache", Path: path, RawQuery: query.Encode()}
	r, err := http.NewRequestWithContext(ctx, method, to.String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Cache-Control", "max-stale")
	answer, err := c.http.Do(r)
	var refused *net.OpError
	if errors.As(err, &refused) && refused.Op == "dial" {
		return nil, ErrNoServer // the server ended without removing its socket
	}
	if err != nil {
		return nil, err
	}
	if c.warnings != nil {
		reason, _ := utilnet.ParseWarningHeaders(answer.Header["Warning"])
		for _, w := range reason {
			c.warnings.HandleWarningHeader(w.Code, w.Agent, w.Text)
		}
	}
	if answer.StatusCode != http.StatusOK {
		defer answer.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
		return nil, fmt.Errorf("the cache server answered %s: %s", answer.Status,
			strings.TrimSpace(string(text)))
	}
	return answer, nil
}

// stopPath stops the server. The answer is its Info. The connection closes when the server has stopped.
const stopPath = "/crdcache/stop"

// stopResponseHeader is the header of that answer, which has no length.
const stopResponseHeader = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"

// serveStop stops the server. The hijacked connection outlives the HTTP server, so it can signal the end.
func (s *Server) serveStop(w http.ResponseWriter) {
	info, err := json.Marshal(s.options.Info())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = fmt.Fprintf(connection, "%s%s\n", stopResponseHeader, info) // fails only if the client has disconnected
	s.mu.Lock()
	if s.mu.ended {
		connection.Close()
	} else {
		s.mu.stopping = append(s.mu.stopping, connection)
	}
	s.mu.Unlock()
	s.cancel()
}

// closeStopping closes the connections of the clients that wait for the end.
func (s *Server) closeStopping() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.ended = true
	var errs []error
	for _, connection := range s.mu.stopping {
		errs = append(errs, connection.Close())
	}
	return errors.Join(errs...)
}

// Stop stops the server, waits until it has released its directory, and returns its info. If ctx ends before,
// the server stops anyway.
func (c *Client) Stop(ctx context.Context) (Info, error) {
	var info Info
	answer, err := c.do(ctx, http.MethodPost, stopPath, nil)
	if err != nil {
		return info, err
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&info); err != nil {
		return info, err
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil && ctx.Err() != nil {
		return info, fmt.Errorf("process %d is stopping and has not ended yet: %w", info.PID,
			context.Cause(ctx))
	}
	return info, nil // after a connection error the server has ended, too
}
