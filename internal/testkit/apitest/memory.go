package apitest

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"syscall"
	"testing"
)

// NewInMemory returns a server like New's that is only reachable in memory, by HTTPClient, so that time in
// testing/synctest does not advance during requests.
func NewInMemory(t testing.TB, types ...Type) *Server {
	t.Helper()
	s := newServer(t, types)
	s.Server, s.http = startInMemory(t, http.HandlerFunc(s.serve))
	return s
}

// startInMemory serves a handler in memory until the end of the test, and returns its only client.
func startInMemory(t testing.TB, handler http.Handler) (*httptest.Server, *http.Client) {
	listener := newPipeListener()
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}}
	transport := &http.Transport{DialContext: listener.dial}
	server.Start()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.CloseClientConnections() // watches end only with their clients
		server.Close()
	})
	return server, &http.Client{Transport: cancelingTransport{transport}}
}

// cancelingTransport ends a response by the context of its request when its body is closed. From Go 1.27 on,
// closing the body while it is read makes net/http wait for a mutex, and synctest stops the clock of its
// timeout.
type cancelingTransport struct{ *http.Transport }

func (t cancelingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	response, err := t.Transport.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = &canceledBody{body: response.Body, cancel: cancel}
	return response, nil
}

// WrappedRoundTripper implements the interface by which client-go finds the underlying transport.
func (t cancelingTransport) WrappedRoundTripper() http.RoundTripper { return t.Transport }

// canceledBody is closed after the Read in progress, which ends with the context.
type canceledBody struct {
	mu     sync.Mutex
	body   io.ReadCloser
	cancel context.CancelFunc
}

func (b *canceledBody) Read(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.body.Read(data)
}

func (b *canceledBody) Close() error {
	b.cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.body.Close()
}

// pipeListener is a net.Listener for connections that are pipes.
type pipeListener struct {
	conns  chan net.Conn
	close  sync.Once
	closed chan struct{}
}

func (m *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case m.conns <- server:
		return client, nil
	case <-m.closed:
		return nil, &net.OpError{Op: "dial", Net: "memory",
			Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (m *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-m.conns:
		return conn, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *pipeListener) Close() error {
	m.close.Do(func() { close(m.closed) })
	return nil
}

func (m *pipeListener) Addr() net.Addr { return pipeAddress{} }

type pipeAddress struct{}

func (pipeAddress) Network() string { return "memory" }
func (pipeAddress) String() string  { return "memory.test" }
