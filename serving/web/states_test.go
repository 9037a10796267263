package web

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/test/testcluster"
)

// TestStates verifies the shown states of a new type, and of one without permission to read it.
func TestStates(t *testing.T) {
	s := newFixture(t, Options{})
	s.cluster.Faults().Add(testcluster.Fault{Match: testcluster.Match{Resource: "services"},
		Effect: testcluster.Status(http.StatusForbidden, metav1.StatusReasonForbidden, "not today")})
	allChanges := s.openStream("changes", "1")
	matchedChanges := s.openStream("changes", "1", "match", "services degraded")
	configMapChanges := s.openStream("changes", "1", "type", "configmaps/v1")
	objectChanges := s.openStream("changes", "1", "type", workloadsID, "key", "payments/ledger")
	for _, events := range []<-chan [2]string{allChanges, matchedChanges, configMapChanges, objectChanges} {
		awaitEvent(t, events, "types", anyText)
	}
	for _, resource := range []string{"configmaps", "services"} {
		if _, err := s.factory.ForResource(schema.GroupVersionResource{Version: "v1",
			Resource: resource}); err != nil {
			t.Fatal(err)
		}
	}
	must(t, s.factory.Start(t.Context()))
	awaitEvent(t, allChanges, "changes", func(data string) bool {
		return strings.Contains(data, `"type":"services/v1","key":"","op":"degraded","reason":"Forbidden"`) &&
			strings.Contains(data, "not today")
	})
	if data := awaitEvent(t, matchedChanges, "changes", anyText); !strings.Contains(data, `"op":"degraded"`) ||
		strings.Contains(data, "configmaps") {
		t.Errorf("the changes that match services are %s, want services to be degraded and no change of configmaps", data)
	}
	data := awaitEvent(t, configMapChanges, "changes",
		func(data string) bool { return strings.Contains(data, `"op":"synced"`) })
	if strings.Contains(data, "services") {
		t.Errorf("the changes of configmaps include services: %s", data)
	}
	s.update(workloads, "payments", "ledger", `{"spec":{"replicas":7}}`)
	if data := awaitEvent(t, objectChanges, "changes", anyText); strings.Contains(data, `"key":""`) {
		t.Errorf("the changes of one object include a state of its type: %s", data)
	}
}

// TestTablesAreBounded stores more keys than the limits of one user and of all users.
func TestTablesAreBounded(t *testing.T) {
	cache, typ := newResultCache(), &visibleType{id: "a"}
	number := 0
	add := func(user string, keys int) *tableKeys {
		number++
		table := &tableKeys{user: user, typeID: typ.id, id: strconv.Itoa(number), keys: make([]string, keys)}
		cache.add(table)
		return table
	}
	isCached := func(table *tableKeys) bool { return cache.get(table.user, table.id, typ) != nil }
	first, second := add("u", maxKeys/2), add("u", maxKeys/2)
	if !isCached(second) || !isCached(first) {
		t.Error("a result within the limits was dropped")
	}
	third := add("u", 1)
	if isCached(second) || !isCached(first) || !isCached(third) {
		t.Error("the least recently used result was not dropped")
	}
	large := add("u", maxKeys+1)
	if !isCached(large) || isCached(third) {
		t.Error("the newest result was dropped")
	}
	var small []*tableKeys
	for range maxTables {
		small = append(small, add("v", 1))
	}
	for range 10 * maxTables {
		add("w", 1)
	}
	for _, table := range append(small, large) {
		if !isCached(table) {
			t.Fatal("a user's results displaced another's")
		}
	}
	for n := range 2 * maxAllKeys / maxKeys {
		add("many"+strconv.Itoa(n), maxKeys)
	}
	sum := 0
	for _, table := range cache.mu.newestFirst {
		sum += len(table.keys)
	}
	if sum > maxAllKeys {
		t.Errorf("all users have %d keys, want at most %d", sum, maxAllKeys)
	}
}

// TestRowsOfUnknownResult requests rows of a result that is not stored, as on another replica.
func TestRowsOfUnknownResult(t *testing.T) {
	s := newFixture(t, Options{})
	query := []string{"type", workloadsID, "query", "namespace=payments", "sort", "name", "descending", "1"}
	table := getJSON[tableAnswer](s, "table", query...).Table
	s.handler.tables = newResultCache()
	rows := s.get(pageURL("rows", append(query, "table", table, "from", "0")...), http.StatusOK)
	if !strings.Contains(rows, "payments/ledger") || strings.Contains(rows, "edge/") {
		t.Errorf("the rows are %s, want those of payments", rows)
	}
	s.handler.tables = newResultCache()
	s.get(pageURL("rows", "type", workloadsID, "table", table, "from", "0"), http.StatusGone)
}

// TestHostilePaths requests paths that do not exist, with a client that does not clean paths.
func TestHostilePaths(t *testing.T) {
	s := newFixture(t, Options{})
	u, err := url.Parse(s.server.URL)
	must(t, err)
	cookies := s.client.Jar.Cookies(u)
	if len(cookies) != 1 {
		t.Fatalf("the cookies are %v, want 1", cookies)
	}
	ask := func(t *testing.T, path, cookie string) *http.Response {
		t.Helper()
		conn, err := net.Dial("tcp", u.Host)
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := fmt.Fprintf(conn,
			"GET %s HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\nConnection: close\r\n\r\n", path, u.Host, cookie); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		must(t, err)
		t.Cleanup(func() { _ = response.Body.Close() })
		return response
	}
	for _, path := range []string{
		"/../handler.go", "/..%2fhandler.go", "/scripts/../../handler.go", "/assets/index.html", "/scripts/",
		"/scripts", "//evil.example/", "/%2e%2e/%2e%2e/etc/passwd",
		"/api", "/api/", "/api/nothing", "/api/type/../object", "/index.html%00.js", "/INDEX.HTML", "/login/",
		"/./login", "/scripts/main.js/", "/api/type%3ftype=x",
	} {
		t.Run(path, func(t *testing.T) {
			if got := ask(t, path, cookies[0].String()).StatusCode; got != 404 && got != 301 &&
				got != 307 && got != 400 {
				t.Errorf("with the cookie: status %d, want an error or a redirect", got)
			}
			if got := ask(t, path, "").StatusCode; got != 401 && got != 400 {
				t.Errorf("without a cookie: %d, want 401", got)
			}
		})
	}
	for _, path := range []string{"/", "/index.html", "/scripts/main.js", "/api/stream", "/api/object?type=" +
		workloadsID + "&key=payments/ledger"} {
		if got := ask(t, path, "").StatusCode; got != 401 {
			t.Errorf("%s without a cookie: %d, want 401", path, got)
		}
	}
}

// TestStreamsAreBounded opens more streams than a user is allowed to. Another user must still be able to open
// one.
func TestStreamsAreBounded(t *testing.T) {
	s := newFixture(t, Options{User: func(r *http.Request) string { return r.FormValue("user") }})
	for range maxStreamsPerUser {
		s.openStream("user", "a")
	}
	if got := s.get(pageURL("stream", "user", "a"), http.StatusServiceUnavailable); !strings.Contains(got,
		"too many pages") {
		t.Errorf("the stream above the limit = %s, want \"too many pages\"", got)
	}
	awaitEvent(t, s.openStream("user", "b"), "types", anyText)
}

// TestWorkLimiter verifies that work is limited per user and in total, and idle users occupy no memory.
func TestWorkLimiter(t *testing.T) {
	limiter := newWorkLimiter(1, 2)
	now, cancel := context.WithCancel(t.Context())
	cancel()
	take := func(user string, want bool) func() {
		t.Helper()
		release, ok := limiter.acquire(now, user)
		if ok != want {
			t.Errorf("%s got a slot: %v, want %v", user, ok, want)
		}
		return release
	}
	a, b := take("a", true), take("b", true)
	take("a", false)
	take("c", false)
	waiting := make(chan func())
	go func() { // ends with the release below
		release, _ := limiter.acquire(t.Context(), "a")
		waiting <- release
	}()
	a()
	a = <-waiting
	b()
	a()
	if len(limiter.mu.users)+len(limiter.totalSlots) != 0 {
		t.Errorf("%d users with %d slots remain, want 0", len(limiter.mu.users), len(limiter.totalSlots))
	}
}

// TestWorkIsBounded verifies that without a free slot, a request waits until its context ends.
func TestWorkIsBounded(t *testing.T) {
	s := newFixture(t, Options{})
	var release func()
	for range maxWorkPerUser {
		release, _ = s.handler.limiter.acquire(t.Context(), "")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	ask := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.handler.limitConcurrency(s.handler.table)(w, httptest.NewRequestWithContext(ctx, "GET",
			pageURL("table", "type", workloadsID), nil))
		return w
	}
	if got := ask(); got.Code != http.StatusServiceUnavailable {
		t.Errorf("response without a free slot = %d %s, want 503", got.Code, got.Body)
	}
	ctx = context.Background()
	release()
	if got := ask(); got.Code != http.StatusOK {
		t.Errorf("response with a free slot = %d %s, want 200", got.Code, got.Body)
	}
}

// TestSlowReadersAreCut verifies that writes to a browser that does not read have a deadline.
func TestSlowReadersAreCut(t *testing.T) {
	s := newFixture(t, Options{})
	w := &slowWriter{header: http.Header{}}
	r := httptest.NewRequest("GET", "/api/stream", nil)
	s.handler.serveStream(w, r) // ends with the first failed write
	if w.lastDeadline.IsZero() || w.writes != 1 {
		t.Errorf("%d writes with the deadline %v, want 1 with a deadline", w.writes, w.lastDeadline)
	}
	if len(s.handler.streams.totalSlots) != 0 {
		t.Error("the slot of the ended stream was not released")
	}
}

// slowWriter is a response writer whose writes fail, as after a write deadline.
type slowWriter struct {
	header       http.Header
	lastDeadline time.Time
	writes       int
}

func (w *slowWriter) Header() http.Header { return w.header }

func (w *slowWriter) WriteHeader(int) {}

func (w *slowWriter) SetWriteDeadline(at time.Time) error { w.lastDeadline = at; return nil }

func (w *slowWriter) Write([]byte) (int, error) {
	w.writes++
	return 0, os.ErrDeadlineExceeded
}
