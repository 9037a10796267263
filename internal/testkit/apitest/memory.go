package apitest

import (
	"context"
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
	listener := newPipeListener()
	s.Server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(s.serve)}}
	transport := &http.Transport{DialContext: listener.dial}
	s.http = &http.Client{Transport: transport}
	s.Start()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		s.end()
	})
	return s
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
