package factory_test

import (
	"context"
	"net"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"
)

// gate is a network between a client and the server that can be cut, while others still reach the server.
type gate struct {
	mu struct {
		sync.Mutex
		cut   bool
		conns []net.Conn
	}
}

// through returns a copy of a configuration whose connections go through the gate.
func (g *gate) through(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Dial = g.dial
	return config
}

func (g *gate) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if g.isCut() {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.cut {
		_ = conn.Close()
	}
	g.mu.conns = append(g.mu.conns, conn)
	return conn, nil
}

func (g *gate) isCut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.cut
}

// close breaks all connections and refuses new ones.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.cut = true
	for _, conn := range g.mu.conns {
		_ = conn.Close()
	}
	g.mu.conns = nil
}

// open lets new connections through.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.cut = false
}
