package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// blockingHandler blocks requests until release is closed.
type blockingHandler struct{ entered, release chan struct{} }

func newBlockingHandler() *blockingHandler {
	return &blockingHandler{make(chan struct{}), make(chan struct{})}
}

func (b *blockingHandler) ServeHTTP(http.ResponseWriter, *http.Request) {
	b.entered <- struct{}{}
	<-b.release
}

func serveOnce(l *limits, user string, watch bool, next http.Handler) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	l.serveLimited(w, httptest.NewRequest(http.MethodGet, "/", nil), user, watch, next)
	return w
}

var emptyHandler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// TestLimitsOfUsers verifies that a user at a limit gets 429 until a request ends; others are served.
func TestLimitsOfUsers(t *testing.T) {
	for name, tt := range map[string]struct {
		limits        Limits
		watch         bool
		otherRequests int
		remaining     string
	}{
		"requests":     {Limits{Requests: 1}, false, http.StatusOK, "requests"},
		"watches":      {Limits{Watches: 1}, true, http.StatusOK, "watches"},
		"totalWatches": {Limits{TotalWatches: 1}, true, http.StatusTooManyRequests, "totalWatches"},
	} {
		t.Run(name, func(t *testing.T) {
			l, b := newLimits(tt.limits, time.Second), newBlockingHandler()
			done := make(chan struct{})
			go func() { defer close(done); serveOnce(l, "a", tt.watch, b) }() // ended by b.release
			<-b.entered
			w := serveOnce(l, "a", tt.watch, emptyHandler)
			var status metav1.Status
			if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil ||
				w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" ||
				status.Reason != metav1.StatusReasonTooManyRequests || status.Details.RetryAfterSeconds != 1 {
				t.Errorf("the response is %d, %v, %s, want 429 with Retry-After", w.Code, w.Header(), w.Body)
			}
			if w := serveOnce(l, "b", tt.watch, emptyHandler); w.Code != tt.otherRequests {
				t.Errorf("another user gets %d, want %d", w.Code, tt.otherRequests)
			}
			if w := serveOnce(l, "a", !tt.watch, emptyHandler); w.Code != http.StatusOK {
				t.Errorf("a request under another limit = %d, want 200", w.Code)
			}
			close(b.release)
			<-done
			if w := serveOnce(l, "a", tt.watch, emptyHandler); w.Code != http.StatusOK {
				t.Errorf("a request below the limit = %d, want 200", w.Code)
			}
		})
	}
}

// TestBytesOfUsers verifies that a user above the limit gets 429 with the time to wait.
func TestBytesOfUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimits(Limits{BytesPerSecond: resource.MustParse("1000"),
			BurstBytes: resource.MustParse("100000")}, time.Second)
		write := func(n int) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if _, err := w.Write(make([]byte, n)); err != nil {
					t.Error(err)
				}
			})
		}
		if w := serveOnce(l, "a", false, write(150_000)); w.Body.Len() != 150_000 {
			t.Errorf("a response was truncated to %d bytes", w.Body.Len())
		}
		if w := serveOnce(l, "a", false, emptyHandler); w.Code != http.StatusTooManyRequests ||
			w.Header().Get("Retry-After") != "50" {
			t.Errorf("the next request = %d, %v, want 429 with Retry-After 50", w.Code, w.Header())
		}
		if w := serveOnce(l, "b", false, emptyHandler); w.Code != http.StatusOK {
			t.Errorf("a request of another user = %d, want 200", w.Code)
		}
		time.Sleep(51 * time.Second) // on the virtual clock
		begin := time.Now()
		serveOnce(l, "a", true, write(2000)) // a watch waits
		if waited := time.Since(begin); waited != time.Second {
			t.Errorf("a watch waited for %v, want 1s", waited)
		}
	})
}

// TestAccountsAreForgotten verifies that idle users below their limits use no memory.
func TestAccountsAreForgotten(t *testing.T) {
	l := newLimits(Limits{}, time.Second)
	for i := range 5 * maxIdleUsers {
		serveOnce(l, fmt.Sprint(i), false, emptyHandler)
	}
	if _, accounts := l.countUsage(); accounts > maxIdleUsers {
		t.Errorf("%d accounts are stored, want at most the maximum", accounts)
	}
}

func withUser(ctx context.Context, name string) context.Context {
	return apirequest.WithUser(ctx, &user.DefaultInfo{Name: name})
}

// TestSlicesAreShared verifies that time slices alternate between a user with many requests and users with
// few.
func TestSlicesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheduler := newFairScheduler()
		scheduler.totalSlots, scheduler.slotsPerUser = 2, 2
		var ends []func()
		for range 2 {
			end, err := scheduler.Begin(withUser(t.Context(), "first"))
			must(t, err)
			ends = append(ends, end)
		}
		started := make(chan string)
		next := make(chan struct{})
		for _, name := range []string{"a", "a", "a", "a", "b", "b", "c"} {
			go func() { // ends with next
				end, err := scheduler.Begin(withUser(context.Background(), name))
				if err != nil {
					t.Error(err)
				}
				started <- name
				<-next
				end()
			}()
			synctest.Wait() // requests queue in this order
		}
		ends[0]()
		var order []string
		for range 7 {
			order = append(order, <-started)
			next <- struct{}{}
			synctest.Wait()
		}
		if want := []string{"a", "b", "c", "a", "b", "a", "a"}; !slices.Equal(order, want) {
			t.Errorf("order of time slices: %v, want %v", order, want)
		}
		ends[1]()
		if len(scheduler.mu.users) > 0 || scheduler.mu.running > 0 || len(scheduler.mu.waiting) > 0 {
			t.Errorf("users with time slices remain: %+v, want none", scheduler.mu.users)
		}
	})
}

// TestHugeSelectors verifies that if a user has slotsPerUser time slices, the user's other requests wait.
// Requests of other users are answered meanwhile.
func TestHugeSelectors(t *testing.T) {
	d := startDaemon(t, newAPIServer(t), newConfig("workloads.demo.crdcache.dev"))
	d.awaitReady()
	scheduler := d.server.cache.scheduler
	var ends []func()
	for range scheduler.slotsPerUser {
		end, err := scheduler.Begin(withUser(t.Context(), "greedy"))
		must(t, err)
		ends = append(ends, end)
	}
	const list = "/apis/demo.crdcache.dev/v1/workloads"
	var excluded []string
	for n := range 1000 {
		excluded = append(excluded, fmt.Sprintf("x%d!=a", n))
	}
	paths := []string{
		list + "?resourceVersion=0", list + "?watch=true&timeoutSeconds=1",
		"/query" + list + "?count=true&scan=true",
	}
	answers := make(chan response)
	for n, path := range paths {
		go func() { // ends when the time slices end
			answers <- d.request("greedy", http.MethodGet, path+"&labelSelector="+strings.Join(excluded, ","), "")
		}()
		for waiting := 0; waiting <= n; _, waiting = scheduler.countSlices("greedy") {
			select {
			case early := <-answers:
				t.Fatalf("%s = %d without waiting", path, early.code)
			default:
			}
			d.request("", http.MethodGet, "/readyz", "") // limits the polling rate
		}
	}
	for _, path := range paths {
		if got := d.request("modest", http.MethodGet, path, ""); got.code != http.StatusOK {
			t.Errorf("%s of another user = %d %s, want 200", path, got.code, got.body)
		}
	}
	if running, waiting := scheduler.countSlices("greedy"); running != scheduler.slotsPerUser ||
		waiting != len(paths) {
		t.Errorf("%d running and %d waiting requests, want slotsPerUser and all others", running, waiting)
	}
	for _, end := range ends {
		end()
	}
	for range paths {
		if got := <-answers; got.code != http.StatusOK {
			t.Errorf("response after the wait = %d %s, want 200", got.code, got.body)
		}
	}
}

// TestLongSelectorsAreNotReviewed verifies that long selectors are not part of access reviews, which keeps
// these small.
func TestLongSelectorsAreNotReviewed(t *testing.T) {
	for name, tt := range map[string]struct {
		selector string
		want     string
	}{
		"short": {"a=b", "a=b"},
		"long":  {strings.Repeat("a", maxReviewedSelectorLength) + "=b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := "/api/v1/pods?labelSelector=" + tt.selector + "&fieldSelector=" + tt.selector
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			must(t, err)
			info, err := resolver.NewRequestInfo(r)
			if err != nil || info.LabelSelector != tt.want || info.FieldSelector != tt.want {
				t.Errorf("the authorized selectors are %q and %q, %v", info.LabelSelector, info.FieldSelector,
					err)
			}
		})
	}
}

// countSlices returns the numbers of running and waiting time slices of a user.
func (f *fairScheduler) countSlices(user string) (running, waiting int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if u := f.mu.users[user]; u != nil {
		return u.running, len(u.queue)
	}
	return 0, 0
}

// TestWatchesAreBounded verifies that watches end after the maximum time, whatever their clients request.
func TestWatchesAreBounded(t *testing.T) {
	serving, end := context.WithCancel(t.Context())
	times := &watchLimits{min: 10 * time.Second, max: 20 * time.Second, servingCtx: serving}
	var seconds string
	var deadline time.Time
	var ctx context.Context
	handler := times.limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ctx = r.Context()
		seconds = r.URL.Query().Get("timeoutSeconds")
		deadline, _ = ctx.Deadline()
		if serving.Err() != nil {
			<-ctx.Done()
		}
	}))
	request := func(query string) {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet,
			"/x?watch=1"+query, nil))
	}
	for query, between := range map[string][2]int{
		"": {10, 20}, "&timeoutSeconds=0": {10, 20}, "&timeoutSeconds=9223372036": {10,
			20}, "&timeoutSeconds=7": {7, 7},
		"&timeoutSeconds=-5": {10, 20}, "&timeoutSeconds=86400&timeoutSeconds=5": {10, 20},
	} {
		for range 20 {
			request(query)
			if n, err := strconv.Atoi(seconds); err != nil || n < between[0] || n > between[1] {
				t.Errorf("watch %q lasts %s s, want %v", query, seconds, between)
			}
			if longest := time.Now().Add(20*time.Second + watchGrace); deadline.After(longest) {
				t.Errorf("watch %q has the deadline %v, want at most the maximum", query, deadline)
			}
		}
	}
	request("&timeoutSeconds=soon")
	if seconds != "soon" {
		t.Errorf("an invalid timeout became %q, want no change", seconds)
	}
	end()
	request("") // ends immediately
}
