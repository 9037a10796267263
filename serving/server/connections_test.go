package server

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
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
		must(t, err)
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
	must(t, err)
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

const workloadsPath = "/apis/demo.crdcache.dev/v1/workloads"

// TestTypesWithoutCache verifies that an object of a type that is not cached is never reported as not found.
func TestTypesWithoutCache(t *testing.T) {
	a := newAPIServer(t)
	a.blocked = make(chan struct{})
	d := startDaemon(t, a, newConfig("workloads.demo.crdcache.dev"))
	for _, path := range []string{workloadsPath, "/api/v1/namespaces/default/configmaps/a"} {
		got := d.request("admin", http.MethodGet, path, "")
		if got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" ||
			!strings.Contains(got.status().Message, "crdcached") {
			t.Errorf("%s before discovery = %d, %s, want 503", path, got.code, got.body)
		}
	}
	close(a.blocked)
	d.awaitReady()
	if got := d.request("admin", http.MethodGet, workloadsPath+"?resourceVersion=0",
		""); got.code != http.StatusOK {
		t.Errorf("list of a cached type = %d, %s, want 200", got.code, got.body)
	}
	got := d.request("admin", http.MethodGet, "/api/v1/namespaces/default/configmaps/a", "")
	if s := got.status(); got.code != http.StatusMisdirectedRequest || s.Reason != ReasonNotCached ||
		!strings.Contains(s.Message, "use the API server") {
		t.Errorf("GET of another type = %d, %s, want 421", got.code, got.body)
	}
}

// TestRefusalsNameCrdcached verifies that errors name crdcached and the remedy.
func TestRefusalsNameCrdcached(t *testing.T) {
	d := startDaemon(t, newAPIServer(t), newConfig("workloads.demo.crdcache.dev"))
	d.awaitReady()
	for _, test := range []struct {
		user, method string
		code         int
		remedy       string
	}{
		{"wrong", http.MethodGet, http.StatusUnauthorized, "that the API server accepts"},
		{"admin", http.MethodPost, http.StatusMethodNotAllowed, "send the request to the API server"},
		{"admin", http.MethodDelete, http.StatusMethodNotAllowed, "send the request to the API server"},
	} {
		got := d.request(test.user, test.method, workloadsPath, "")
		if text := got.status().Message; got.code != test.code || !strings.Contains(text, "crdcached") ||
			!strings.Contains(text, test.remedy) {
			t.Errorf("%s by %s = %d, %s; want %d with the remedy %q", test.method, test.user, got.code, got.body,
				test.code, test.remedy)
		}
	}
}

// TestOutageIsNoRefusal verifies that if the API server does not answer reviews, the response is 503, not 401
// or 500.
func TestOutageIsNoRefusal(t *testing.T) {
	a := newAPIServer(t)
	d := startDaemon(t, a, newConfig("workloads.demo.crdcache.dev"))
	d.awaitReady()
	if got := d.request("known", http.MethodGet, workloadsPath+"?resourceVersion=0",
		""); got.code != http.StatusOK {
		t.Fatalf("list with an API server = %d, %s, want 200", got.code, got.body)
	}
	a.stop()
	for _, ask := range []struct{ user, path string }{
		{"new", workloadsPath + "?resourceVersion=0"}, {"new", "/readyz"}, {"known",
			"/api/v1/namespaces"}, {"", workloadsPath},
	} {
		got := d.request(ask.user, http.MethodGet, ask.path, "")
		if got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" ||
			got.status().Code != http.StatusServiceUnavailable {
			t.Errorf("%s by %q without an API server = %d, %s, want 503", ask.path, ask.user, got.code,
				got.body)
		}
	}
	if got := d.request("known", http.MethodGet, workloadsPath+"?resourceVersion=0",
		""); got.code != http.StatusOK {
		t.Errorf("list with a cached review = %d, %s, want 200", got.code, got.body)
	}
}

// TestReviews verifies that clients can query their identity and their permissions.
func TestReviews(t *testing.T) {
	d := startDaemon(t, newAPIServer(t), newConfig("workloads.demo.crdcache.dev"))
	d.awaitReady()
	var who authenticationv1.SelfSubjectReview
	got := d.request("admin", http.MethodPost, userReviewPath,
		`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`)
	if err := json.Unmarshal(got.body, &who); got.code != http.StatusCreated || err != nil ||
		who.Status.UserInfo.Username != "admin" {
		t.Errorf("SelfSubjectReview = %d, %s, want admin", got.code, got.body)
	}
	for _, test := range []struct {
		user, spec string
		allowed    bool
		reason     string
	}{
		{"admin", `"resourceAttributes":{"verb":"list","group":"demo.crdcache.dev","resource":"workloads"}`,
			true, ""},
		{"admin", `"resourceAttributes":{"verb":"delete","group":"demo.crdcache.dev","resource":"workloads"}`,
			false, "only reads"},
		{"admin", `"resourceAttributes":{"verb":"list","resource":"pods"}`, false, "does not cache pods"},
		{"admin", `"nonResourceAttributes":{"verb":"get","path":"/metrics"}`, true, ""},
	} {
		var review authorizationv1.SelfSubjectAccessReview
		got := d.request(test.user, http.MethodPost, accessReviewPath,
			`{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{`+
				test.spec+`}}`)
		err := json.Unmarshal(got.body, &review)
		if err != nil || got.code != http.StatusCreated || review.Status.Allowed != test.allowed ||
			!strings.Contains(review.Status.Reason, test.reason) {
			t.Errorf("SelfSubjectAccessReview %s = %d, %s; want allowed %v because %q", test.spec, got.code,
				got.body, test.allowed, test.reason)
		}
	}
	for _, body := range []string{"", "{",
		`{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{}}`} {
		if got := d.request("admin", http.MethodPost, accessReviewPath, body); got.code != http.StatusBadRequest {
			t.Errorf("invalid review %q = %d, %s, want 400", body, got.code, got.body)
		}
	}
	if got := d.request("nobody", http.MethodPost, userReviewPath, "{}"); got.code != http.StatusForbidden {
		t.Errorf("a review without permission to create it = %d, %s, want 403", got.code, got.body)
	}
}

// TestTokenAudiences checks that TokenReviews contain the audiences of the config.
func TestTokenAudiences(t *testing.T) {
	a := newAPIServer(t)
	config := newConfig("workloads.demo.crdcache.dev")
	config.TokenAudiences = []string{"crdcached"}
	d := startDaemon(t, a, config)
	d.awaitReady()
	if got := d.request("admin", http.MethodGet, workloadsPath+"?resourceVersion=0",
		""); got.code != http.StatusOK {
		t.Errorf("list = %d, %s, want 200", got.code, got.body)
	}
	if diff := cmp.Diff([]string{"crdcached"}, *a.audiences.Load()); diff != "" {
		t.Errorf("the token is reviewed for (-want +got):\n%s", diff)
	}
}

// TestPageHosts checks that the page is served only for the hosts of the config.
func TestPageHosts(t *testing.T) {
	config := newConfig("workloads.demo.crdcache.dev")
	config.Page = PageConfig{Enabled: true, Hosts: []string{"crdcached.example"}}
	d := startDaemon(t, newAPIServer(t), config)
	d.awaitReady()
	got := d.request("admin", http.MethodGet, "/page/open", "")
	if got.code != http.StatusMisdirectedRequest || got.header.Get("Set-Cookie") != "" {
		t.Errorf("the page for another host = %d, %v, want 421", got.code, got.header)
	}
}
