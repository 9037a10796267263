package localserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

type Client struct {
	dir           SocketDir
	identity      string
	httpClient    *http.Client
	readTransport *http.Transport     // for objects; it times out only before the first byte
	warnings      rest.WarningHandler // nil: warnings are discarded
}

var ErrNoServer = errors.New("no cache server runs for this cluster and user: start one with 'serve TYPE...'")

// controlTimeout bounds requests for the server's state, and SelfSubjectReviews.
const controlTimeout = 2 * time.Second

// responseTimeout bounds the wait for the first byte of an answer with objects.
const responseTimeout = 10 * time.Second

// errNotResponding is returned for a server that accepts connections but does not answer.
var errNotResponding = fmt.Errorf("the cache server did not respond within %v: is it suspended? If so, resume or kill its process",
	controlTimeout)

// NewClient returns a client for the server of the config's cluster and user. It returns ErrNoServer if there
// is no socket, and an error if another user could have created the socket. It does not connect to the
// server.
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

// NewClientAt works like NewClient for the path of a socket. It also verifies the identity of the server.
func NewClientAt(ctx context.Context, config *rest.Config, socket string) (c *Client, info Info, err error) {
	identity, _, err := Identity(ctx, config)
	if err == nil {
		dir := SocketDir{Dir: filepath.Dir(socket), name: filepath.Base(socket)}
		c, err = newClient(config, identity, dir)
	}
	if err == nil {
		info, err = c.Info(ctx)
	}
	if errors.Is(err, ErrNoServer) {
		err = fmt.Errorf("no cache server listens at %s", socket)
	}
	return c, info, err
}

func newClient(config *rest.Config, identity string, dir SocketDir) (*Client, error) {
	c := &Client{dir: dir, identity: identity, warnings: config.WarningHandler}
	if err := c.dir.verify(); errors.Is(err, os.ErrNotExist) {
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
	c.httpClient, c.readTransport = &http.Client{Transport: transport}, transport.Clone()
	c.readTransport.ResponseHeaderTimeout = responseTimeout
	return c, nil
}

func (c *Client) Info(ctx context.Context) (Info, error) {
	var info Info
	err := c.requestJSON(ctx, http.MethodGet, "/crdcache/server", nil, &info)
	if err == nil && info.Identity != c.identity {
		err = errOtherIdentity
	}
	return info, err
}

var errOtherIdentity = errors.New("the cache server belongs to another cluster or user")

func (c *Client) Socket() string { return c.dir.Socket() }

func (c *Client) Resolve(ctx context.Context, name string) (Resolution, error) {
	var answer Resolution
	err := c.requestJSON(ctx, http.MethodGet, "/crdcache/types", url.Values{"name": {name}}, &answer)
	if err == nil && answer.Identity != c.identity {
		err = errOtherIdentity
	}
	return answer, err
}

// LoginLink requests a new login link for the server's web page.
func (c *Client) LoginLink(ctx context.Context) (string, error) {
	var link string
	return link, c.requestJSON(ctx, http.MethodPost, "/crdcache/link", nil, &link)
}

// Open requests a document. The caller can read the body until ctx ends. If configDigest is set, the answer
// must be from a server with these index configs. Open compares the digest after the answer has begun,
// because the server can reload configs at any time.
func (c *Client) Open(ctx context.Context, path string, query url.Values, configDigest string) (io.ReadCloser,
	error) {
	answer, err := c.send(ctx, http.MethodGet, path, query)
	if err != nil {
		return nil, err
	}
	if configDigest != "" {
		info, err := c.Info(ctx)
		if err == nil && info.Config != configDigest {
			err = ErrOtherConfig
		}
		if err != nil {
			answer.Body.Close()
			return nil, err
		}
	}
	return answer.Body, nil
}

var ErrOtherConfig = errors.New("it has other index configs")

func (c *Client) requestJSON(ctx context.Context, method, path string, query url.Values, target any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, controlTimeout, errNotResponding)
	defer cancel()
	answer, err := c.send(ctx, method, path, query)
	if err == nil {
		defer answer.Body.Close()
		err = json.NewDecoder(answer.Body).Decode(target)
	}
	if err != nil && context.Cause(ctx) == errNotResponding {
		return errNotResponding
	}
	return err
}

// send returns an answer with status 200, or an error. The caller must close its body.
func (c *Client) send(ctx context.Context, method, path string, query url.Values) (*http.Response, error) {
	requestURL := url.URL{Scheme: "http", Host: "crdcache", Path: path, RawQuery: query.Encode()}
	r, err := http.NewRequestWithContext(ctx, method, requestURL.String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Cache-Control", "max-stale")
	answer, err := c.httpClient.Do(r)
	if dialErr, ok := errors.AsType[*net.OpError](err); ok && dialErr.Op == "dial" {
		return nil, ErrNoServer // the server ended without removing its socket
	}
	if err != nil {
		return nil, err
	}
	if c.warnings != nil {
		headerWarnings, _ := utilnet.ParseWarningHeaders(answer.Header["Warning"])
		for _, w := range headerWarnings {
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

// Stop stops the server, waits until it has released its directory, and returns its info. If ctx ends
// earlier, the server stops nevertheless.
func (c *Client) Stop(ctx context.Context) (Info, error) {
	var info Info
	if err := c.requestJSON(ctx, http.MethodPost, "/crdcache/stop", nil, &info); err != nil {
		return info, err
	}
	lock, err := c.dir.openLock()
	if errors.Is(err, fs.ErrNotExist) {
		return info, nil // the server has removed its folder
	} else if err != nil {
		return info, err
	}
	defer lock.Close()
	for !tryLock(lock) {
		select {
		case <-ctx.Done():
			return info, fmt.Errorf("process %d is stopping and has not ended yet: %w", info.PID,
				context.Cause(ctx))
		case <-time.After(pollInterval):
		}
	}
	return info, nil
}
