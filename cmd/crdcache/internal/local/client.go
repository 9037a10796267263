package local

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

// Client asks the server of an identity.
type Client struct {
	place    Place
	identity string
	http     *http.Client
	reads    *http.Transport     // to read objects, of which the first are not waited for without end
	warnings rest.WarningHandler // nil: nobody is warned
}

// ErrNone is the error where no server listens.
var ErrNone = errors.New("no server keeps types for this cluster and user: start one with 'serve TYPE...'")

// patience bounds what a server takes to say what it has.
const patience = 2 * time.Second

// beginning bounds what a server takes to begin with the objects that it is asked for, which it has.
const beginning = 10 * time.Second

// errHangs is the error of a server that listens and does nothing else, as one that was suspended.
var errHangs = fmt.Errorf("the server does not answer within %v: has it been suspended?", patience)

// NewClient returns a client for the server of the cluster and the user of a config, if there may be one: the
// error is ErrNone where there is no socket, and otherwise says why that is not trusted. It asks no server.
func NewClient(ctx context.Context, config *rest.Config) (*Client, error) {
	if _, err := os.Stat(PlaceOf("").Folder); errors.Is(err, os.ErrNotExist) {
		return nil, ErrNone // no server was ever started, so that the account is not needed
	}
	identity, err := Identity(ctx, config)
	if err != nil {
		return nil, err
	}
	return newClient(config, identity, PlaceOf(identity))
}

// NewClientAt is NewClient for a server with this socket, which is asked whether it is for the cluster and
// the user.
func NewClientAt(ctx context.Context, config *rest.Config, socket string) (*Client, error) {
	identity, err := Identity(ctx, config)
	if err != nil {
		return nil, err
	}
	c, err := newClient(config, identity, placeAt(socket))
	if err == nil {
		_, err = c.Info(ctx)
	}
	if errors.Is(err, ErrNone) {
		return nil, fmt.Errorf("no server listens at %s", socket)
	}
	return c, err
}

func newClient(config *rest.Config, identity string, place Place) (*Client, error) {
	c := &Client{place: place, identity: identity, warnings: config.WarningHandler}
	if err := c.place.check(); errors.Is(err, os.ErrNotExist) {
		return nil, ErrNone
	} else if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", c.place.Socket())
		},
		DisableCompression: true,
	}
	c.http, c.reads = &http.Client{Transport: transport}, transport.Clone()
	c.reads.ResponseHeaderTimeout = beginning
	return c, nil
}

// Info asks the server about itself.
func (c *Client) Info(ctx context.Context) (Info, error) {
	var info Info
	err := c.ask(ctx, http.MethodGet, "/crdcache/server", nil, &info)
	if err == nil && info.Identity != c.identity {
		err = errOther
	}
	return info, err
}

var errOther = errors.New("the server is that of another cluster or user")

// Socket is where the server listens.
func (c *Client) Socket() string { return c.place.Socket() }

// Resolve asks what a name of a type stands for.
func (c *Client) Resolve(ctx context.Context, name string) (Answer, error) {
	var answer Answer
	err := c.ask(ctx, http.MethodGet, "/crdcache/types", url.Values{"name": {name}}, &answer)
	if err == nil && answer.Identity != c.identity {
		err = errOther
	}
	return answer, err
}

// Link asks for an address of the server's page, which lets one browser in.
func (c *Client) Link(ctx context.Context) (string, error) {
	var link string
	return link, c.ask(ctx, http.MethodPost, "/crdcache/link", nil, &link)
}

// Open requests a document of any other kind, which can be read until ctx ends.
func (c *Client) Open(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	answer, err := c.do(ctx, http.MethodGet, path, query)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

func (c *Client) ask(ctx context.Context, method, path string, query url.Values, into any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errHangs)
	defer cancel()
	err := c.send(ctx, method, path, query, into)
	if err != nil && context.Cause(ctx) == errHangs {
		return errHangs
	}
	return err
}

func (c *Client) send(ctx context.Context, method, path string, query url.Values, into any) error {
	answer, err := c.do(ctx, method, path, query)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	return json.NewDecoder(answer.Body).Decode(into)
}

// do returns an answer that is none of an error; its body has to be closed.
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
		return nil, ErrNone // it has ended, and left its socket
	}
	if err != nil {
		return nil, err
	}
	if c.warnings != nil {
		told, _ := utilnet.ParseWarningHeaders(answer.Header["Warning"])
		for _, w := range told {
			c.warnings.HandleWarningHeader(w.Code, w.Agent, w.Text)
		}
	}
	if answer.StatusCode != http.StatusOK {
		defer answer.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
		return nil, fmt.Errorf("the server answered %s: %s", answer.Status, strings.TrimSpace(string(text)))
	}
	return answer, nil
}

// stopPath is where a server is asked to end. The answer is its Info, and ends when the server has.
const stopPath = "/crdcache/stop"

// stopHead is the head of that answer, whose length nobody knows.
const stopHead = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"

// serveStop ends the server. The connection outlives the HTTP server, so that it tells of the end of all that
// comes after.
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
	_, _ = fmt.Fprintf(connection, "%s%s\n", stopHead, info) // whoever has gone does not wait
	s.mu.Lock()
	if s.mu.ended {
		connection.Close()
	} else {
		s.mu.stopping = append(s.mu.stopping, connection)
	}
	s.mu.Unlock()
	s.stop(ErrStopped)
}

// tellEnd tells those who have stopped the server that it has ended.
func (s *Server) tellEnd() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.ended = true
	var errs []error
	for _, connection := range s.mu.stopping {
		errs = append(errs, connection.Close())
	}
	return errors.Join(errs...)
}

// Stop ends the server, and returns what it said of itself when it has ended and left its place. If ctx ends
// before, the server has been told, and ends all the same.
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
		return info, fmt.Errorf("process %d was told to end, and has not yet: %w", info.PID,
			context.Cause(ctx))
	}
	return info, nil // with whatever error its end was told
}
