package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
