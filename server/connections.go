package server

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/netutil"
)

// helloTime is how long a client may take for the handshake of TLS. The generic server has 32 seconds, in
// which strangers could hold many connections.
const helloTime = 5 * time.Second

// boundConnections returns a listener that accepts as many connections as the limits say: more of one address
// are closed at once, and more of all wait.
func boundConnections(inner net.Listener, limits Limits, refused prometheus.Counter) net.Listener {
	bounded := net.Listener(&addressListener{Listener: inner, most: limits.ConnectionsPerAddress,
		refused: refused, open: map[string]int{}})
	if limits.Connections > 0 {
		bounded = netutil.LimitListener(bounded, limits.Connections)
	}
	return bounded
}

// addressListener bounds the connections of each address, and the time that each may take to begin.
type addressListener struct {
	net.Listener
	most    int // 0: no limit
	refused prometheus.Counter

	mu   sync.Mutex
	open map[string]int
}

// Accept implements net.Listener.
func (l *addressListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address, _, err := net.SplitHostPort(c.RemoteAddr().String())
		if err != nil {
			address = c.RemoteAddr().String() // of a listener that is none of TCP
		}
		if l.begin(address) {
			return &connection{Conn: c, begun: time.Now(), end: sync.OnceFunc(func() { l.end(address) })}, nil
		}
		l.refused.Inc()
		_ = c.Close() // nothing was written to it
	}
}

func (l *addressListener) begin(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.most > 0 && l.open[address] >= l.most {
		return false
	}
	l.open[address]++
	return true
}

func (l *addressListener) end(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[address]--; l.open[address] == 0 {
		delete(l.open, address)
	}
}

// connection is one that is counted.
type connection struct {
	net.Conn
	begun time.Time
	end   func()
	// greeted is set when net/http takes back the deadline of the handshake: it has ended.
	greeted atomic.Bool
}

// SetReadDeadline implements net.Conn. net/http sets a deadline for the handshake before it reads anything,
// and takes it back after that.
func (c *connection) SetReadDeadline(t time.Time) error {
	if t.IsZero() {
		c.greeted.Store(true)
	}
	if latest := c.begun.Add(helloTime); !c.greeted.Load() && t.After(latest) {
		t = latest
	}
	return c.Conn.SetReadDeadline(t)
}

// Close implements net.Conn.
func (c *connection) Close() error {
	defer c.end()
	return c.Conn.Close()
}
