package server

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/netutil"
)

// handshakeTimeout bounds the TLS handshake. The timeout of the generic server is 32 seconds, in which
// anonymous clients could hold many connections.
const handshakeTimeout = 5 * time.Second

// limitConnections limits the connections of a listener. Connections above the limit of an address are
// closed. Connections above the total limit wait.
func limitConnections(inner net.Listener, limits Limits, rejected prometheus.Counter) net.Listener {
	limited := net.Listener(&addressListener{Listener: inner, limit: limits.ConnectionsPerAddress,
		rejected: rejected, connections: map[string]int{}})
	if limits.Connections > 0 {
		limited = netutil.LimitListener(limited, limits.Connections)
	}
	return limited
}

// addressListener limits the connections of each address, and the time of their handshakes.
type addressListener struct {
	net.Listener
	limit    int // 0: no limit
	rejected prometheus.Counter

	mu          sync.Mutex
	connections map[string]int
}

func (l *addressListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address, _, err := net.SplitHostPort(c.RemoteAddr().String())
		if err != nil {
			address = c.RemoteAddr().String() // not a TCP listener
		}
		if l.admit(address) {
			return &connection{Conn: c, acceptedAt: time.Now(),
				release: sync.OnceFunc(func() { l.release(address) })}, nil
		}
		l.rejected.Inc()
		_ = c.Close() // nothing was written to it
	}
}

func (l *addressListener) admit(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limit > 0 && l.connections[address] >= l.limit {
		return false
	}
	l.connections[address]++
	return true
}

func (l *addressListener) release(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.connections[address]--; l.connections[address] == 0 {
		delete(l.connections, address)
	}
}

type connection struct {
	net.Conn
	acceptedAt time.Time
	release    func()
	// handshakeDone is set when net/http removes the deadline after the handshake.
	handshakeDone atomic.Bool
}

// SetReadDeadline shortens the deadline of the handshake. net/http sets the deadline before the first read
// and removes it after the handshake.
func (c *connection) SetReadDeadline(t time.Time) error {
	if t.IsZero() {
		c.handshakeDone.Store(true)
	}
	if latest := c.acceptedAt.Add(handshakeTimeout); !c.handshakeDone.Load() && t.After(latest) {
		t = latest
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *connection) Close() error {
	defer c.release()
	return c.Conn.Close()
}
