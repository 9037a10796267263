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
	addresses []string
}

func (f *fixedListener) Accept() (net.Conn, error) {
	if len(f.addresses) == 0 {
		return nil, io.EOF
	}
	ours, theirs := net.Pipe()
	_ = theirs.Close()
	c := &fakeConn{Conn: ours, remoteAddress: &net.TCPAddr{IP: net.ParseIP(f.addresses[0]), Port: 1000 +
		len(f.addresses)}}
	f.addresses = f.addresses[1:]
	return c, nil
}

type fakeConn struct {
	net.Conn
	remoteAddress net.Addr
}

func (a *fakeConn) RemoteAddr() net.Addr { return a.remoteAddress }

// TestConnectionsOfAnAddress verifies that one address cannot occupy all connections.
func TestConnectionsOfAnAddress(t *testing.T) {
	rejected := prometheus.NewCounter(prometheus.CounterOpts{Name: "refused"})
	from := &fixedListener{addresses: []string{"10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.2", "fd00::1",
		"10.0.0.1"}}
	l := limitConnections(from, Limits{Connections: 5, ConnectionsPerAddress: 2}, rejected)
	var got []string
	var accepted []net.Conn
	for range 4 {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		accepted = append(accepted, c)
		got = append(got, c.RemoteAddr().(*net.TCPAddr).IP.String())
	}
	if diff := cmp.Diff([]string{"10.0.0.1", "10.0.0.1", "10.0.0.2", "fd00::1"}, got); diff != "" {
		t.Errorf("accepted connections (-want +got):\n%s", diff)
	}
	if n := testutil.ToFloat64(rejected); n != 1 {
		t.Errorf("%v connections were refused, want 1", n)
	}
	for range 2 { // a second Close must not release another connection
		_ = accepted[0].Close()
	}
	if c, err := l.Accept(); err != nil || c.RemoteAddr().(*net.TCPAddr).IP.String() != "10.0.0.1" {
		t.Errorf("Accept() after a connection was closed = %v, want the next one", err)
	}
	if _, err := l.Accept(); !errors.Is(err, io.EOF) {
		t.Errorf("Accept() at the end = %v, want io.EOF", err)
	}
}

// deadlineRecorder records the deadlines set on the connections of a listener.
type deadlineRecorder struct {
	net.Listener
	mu       sync.Mutex
	recorded []time.Time
}

func (d *deadlineRecorder) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	return &recordedConn{c, d}, err
}

type recordedConn struct {
	net.Conn
	recorder *deadlineRecorder
}

func (c *recordedConn) SetReadDeadline(t time.Time) error {
	c.recorder.mu.Lock()
	defer c.recorder.mu.Unlock()
	c.recorder.recorded = append(c.recorder.recorded, t)
	return c.Conn.SetReadDeadline(t)
}

// TestHandshakesEndSoon checks that the handshake has a shorter deadline than net/http's. Later deadlines are
// unchanged.
func TestHandshakesEndSoon(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	recorder := &deadlineRecorder{Listener: server.Listener}
	server.Listener = limitConnections(recorder, Limits{},
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
	recorder.mu.Lock()
	defer recorder.mu.Unlock()
	if len(recorder.recorded) < 3 {
		t.Fatalf("the deadlines are %v, want at least 3", recorder.recorded)
	}
	if first := recorder.recorded[0]; first.Before(before) || first.After(time.Now().Add(handshakeTimeout)) {
		t.Errorf("the deadline of the handshake is %v, want within handshakeTimeout after %v", first, before)
	}
	if !recorder.recorded[1].IsZero() || recorder.recorded[2].Before(before.Add(time.Hour)) {
		t.Errorf("the deadlines after the handshake are %v, want none and net/http's", recorder.recorded[1:])
	}
}
