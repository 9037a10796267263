package server

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// fixedListener is a listener that accepts one connection from each address.
type fixedListener struct {
	net.Listener
	from []string
}

func (f *fixedListener) Accept() (net.Conn, error) {
	if len(f.from) == 0 {
		return nil, io.EOF
	}
	ours, theirs := net.Pipe()
	_ = theirs.Close()
	c := &arrival{Conn: ours, from: &net.TCPAddr{IP: net.ParseIP(f.from[0]), Port: 1000 + len(f.from)}}
	f.from = f.from[1:]
	return c, nil
}

type arrival struct {
	net.Conn
	from net.Addr
}

func (a *arrival) RemoteAddr() net.Addr { return a.from }

// TestConnectionsOfAnAddress verifies that one address cannot occupy all connections.
func TestConnectionsOfAnAddress(t *testing.T) {
	refused := prometheus.NewCounter(prometheus.CounterOpts{Name: "refused"})
	from := &fixedListener{from: []string{"10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.2", "fd00::1", "10.0.0.1"}}
	l := limitConnections(from, Limits{Connections: 5, ConnectionsPerAddress: 2}, refused)
	var got []string
	var open []net.Conn
	for range 4 {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		got = append(got, c.RemoteAddr().(*net.TCPAddr).IP.String())
	}
	if diff := cmp.Diff([]string{"10.0.0.1", "10.0.0.1", "10.0.0.2", "fd00::1"}, got); diff != "" {
		t.Errorf("accepted connections (-want +got):\n%s", diff)
	}
	if n := testutil.ToFloat64(refused); n != 1 {
		t.Errorf("%v connections were refused, want 1", n)
	}
	for range 2 { // a second Close must not release another connection
		_ = open[0].Close()
	}
	if c, err := l.Accept(); err != nil || c.RemoteAddr().(*net.TCPAddr).IP.String() != "10.0.0.1" {
		t.Errorf("Accept() after a connection was closed = %v, want the next one", err)
	}
	if _, err := l.Accept(); !errors.Is(err, io.EOF) {
		t.Errorf("Accept() at the end = %v, want io.EOF", err)
	}
}

// deadlines records the deadlines set on the connections of a listener.
type deadlines struct {
	net.Listener
	mu  sync.Mutex
	set []time.Time
}

func (d *deadlines) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	return &timed{c, d}, err
}

type timed struct {
	net.Conn
	log *deadlines
}

func (c *timed) SetReadDeadline(t time.Time) error {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	c.log.set = append(c.log.set, t)
	return c.Conn.SetReadDeadline(t)
}

// TestHandshakesEndSoon checks that the handshake has a shorter deadline than net/http's. Later deadlines are
// unchanged.
func TestHandshakesEndSoon(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	recorded := &deadlines{Listener: server.Listener}
	server.Listener = limitConnections(recorded, Limits{},
		prometheus.NewCounter(prometheus.CounterOpts{Name: "refused"}))
	server.Config.ReadHeaderTimeout = time.Hour
	server.StartTLS()
	defer server.Close()
	before := time.Now()
	response, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	recorded.mu.Lock()
	defer recorded.mu.Unlock()
	if len(recorded.set) < 3 {
		t.Fatalf("the deadlines are %v, want at least 3", recorded.set)
	}
	if first := recorded.set[0]; first.Before(before) || first.After(time.Now().Add(handshakeTimeout)) {
		t.Errorf("the deadline of the handshake is %v, want within handshakeTimeout after %v", first, before)
	}
	if !recorded.set[1].IsZero() || recorded.set[2].Before(before.Add(time.Hour)) {
		t.Errorf("the deadlines after the handshake are %v", recorded.set[1:])
	}
}
