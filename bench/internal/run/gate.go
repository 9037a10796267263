package run

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// eventGate is an HTTP proxy on loopback before an API server. It is open at first. A closed gate still reads
// from the server, but holds the events back.
type eventGate struct {
	server     *http.Server
	dir        string
	kubeconfig string

	mu struct {
		sync.Mutex
		closed bool
		// events is the number of events held back since the gate was closed. changed is a channel that is
		// replaced, and the old one closed, when events or closed changes.
		events  int
		changed chan struct{}
	}
}

// startGate starts a gate before the API server of a kubeconfig. Requests use that kubeconfig's credentials.
// Stop ends the gate.
func startGate(kubeconfig string) (*eventGate, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	g := &eventGate{}
	g.mu.changed = make(chan struct{})
	if g.dir, err = os.MkdirTemp("", "gate-"); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		_ = os.RemoveAll(g.dir)
		return nil, err
	}
	g.kubeconfig = filepath.Join(g.dir, "kubeconfig")
	if err := writeGateConfig(g.kubeconfig, "http://"+listener.Addr().String()); err != nil {
		_ = listener.Close()
		_ = os.RemoveAll(g.dir)
		return nil, err
	}
	g.server = &http.Server{Handler: g.proxy(target, transport)}
	go func() { _ = g.server.Serve(listener) }() // ends with Stop
	return g, nil
}

func writeGateConfig(path, address string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["gate"] = &clientcmdapi.Cluster{Server: address}
	config.Contexts["gate"] = &clientcmdapi.Context{Cluster: "gate"}
	config.CurrentContext = "gate"
	return clientcmd.WriteToFile(*config, path)
}

func (g *eventGate) proxy(target *url.URL, transport http.RoundTripper) http.Handler {
	return &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(response *http.Response) error {
			if response.Request.URL.Query().Get("watch") != "" {
				response.Body = g.wrapBody(response.Body)
			}
			return nil
		},
	}
}

// Kubeconfig returns the path of a file with the gate's address.
func (g *eventGate) Kubeconfig() string { return g.kubeconfig }

// Hold holds back later events.
func (g *eventGate) Hold() { g.set(true) }

// Open releases all events.
func (g *eventGate) Open() { g.set(false) }

func (g *eventGate) set(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.closed, g.mu.events = closed, 0
	g.notifyLocked()
}

func (g *eventGate) notifyLocked() {
	close(g.mu.changed)
	g.mu.changed = make(chan struct{})
}

// addHeld adds to the number of events held back, if the gate is closed.
func (g *eventGate) addHeld(events int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.closed && events > 0 {
		g.mu.events += events
		g.notifyLocked()
	}
}

// state returns whether the gate is closed, the number of waiting events, and a channel that is closed when
// either changes.
func (g *eventGate) state() (closed bool, events int, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.closed, g.mu.events, g.mu.changed
}

// Wait waits until the closed gate holds back the given number of events.
func (g *eventGate) Wait(ctx context.Context, events int) error {
	for {
		_, waiting, changed := g.state()
		if waiting >= events {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d events have come: %w", waiting, events, context.Cause(ctx))
		}
	}
}

// Stop ends the gate and all its connections.
func (g *eventGate) Stop() error {
	err := g.server.Close()
	if removed := os.RemoveAll(g.dir); err == nil {
		err = removed
	}
	return err
}

// heldBody is the body of a watch. While the gate is closed, it buffers the server's data.
type heldBody struct {
	gate *eventGate
	body io.ReadCloser

	mu struct {
		sync.Mutex
		waiting bytes.Buffer
		err     error         // of the body, after the buffered data
		more    chan struct{} // closed when there is more data or an error
	}
	closed chan struct{} // closed by Close
	once   sync.Once
}

// wrapBody returns the body of a watch behind the gate.
func (g *eventGate) wrapBody(body io.ReadCloser) io.ReadCloser {
	h := &heldBody{gate: g, body: body, closed: make(chan struct{})}
	h.mu.more = make(chan struct{})
	go h.pump() // ends with the body, which Close closes
	return h
}

func (h *heldBody) pump() {
	buffer := make([]byte, 64<<10)
	for {
		n, err := h.body.Read(buffer)
		h.mu.Lock()
		h.mu.waiting.Write(buffer[:n])
		h.mu.err = err
		close(h.mu.more)
		h.mu.more = make(chan struct{})
		h.mu.Unlock()
		h.gate.addHeld(bytes.Count(buffer[:n], []byte{'\n'}))
		if err != nil {
			return
		}
	}
}

// Read implements io.Reader.
func (h *heldBody) Read(p []byte) (int, error) {
	for {
		closed, _, changed := h.gate.state()
		n, more, err := 0, (<-chan struct{})(nil), error(nil)
		if !closed {
			n, more, err = h.readBuffered(p)
		}
		if n > 0 || err != nil {
			return n, err
		}
		select {
		case <-changed:
		case <-more:
		case <-h.closed:
			return 0, io.ErrClosedPipe
		}
	}
}

// readBuffered reads buffered data. If there is none, it returns a channel that is closed when there is more.
func (h *heldBody) readBuffered(p []byte) (n int, more <-chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n, _ = h.mu.waiting.Read(p); n > 0 {
		return n, nil, nil
	}
	return 0, h.mu.more, h.mu.err
}

// Close implements io.Closer.
func (h *heldBody) Close() error {
	h.once.Do(func() { close(h.closed) })
	return h.body.Close()
}
