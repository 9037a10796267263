package server

import (
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"golang.org/x/time/rate"

	"github.com/crdcache/crdcache/readapi"
)

type limits struct {
	config       Limits
	writeTimeout time.Duration
	rejected     *prometheus.CounterVec // by limit

	mu struct {
		sync.Mutex
		usageByUser map[string]*userUsage
		watches     int // watches of all users
	}
}

// userUsage is the usage of a user. The lock of limits guards its numbers.
type userUsage struct {
	requests, watches int
	// bytes limits the written bytes. The number of its tokens is negative above the limit.
	bytes *rate.Limiter
}

func newLimits(config Limits, writeTimeout time.Duration) *limits {
	l := &limits{config: config, writeTimeout: writeTimeout,
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "crdcached_refused_requests_total",
			Help: "Requests that were refused because a user, or all of them, took too much, by the limit.",
		}, []string{"limit"})}
	l.mu.usageByUser = map[string]*userUsage{}
	return l
}

const maxIdleUsers = 1000

// usageLocked returns the usage of a user, creating it if necessary.
func (l *limits) usageLocked(user string) *userUsage {
	if a := l.mu.usageByUser[user]; a != nil {
		return a
	}
	if len(l.mu.usageByUser) >= maxIdleUsers {
		for name, a := range l.mu.usageByUser {
			if a.requests+a.watches == 0 && a.bytes.Tokens() >= float64(a.bytes.Burst()) {
				delete(l.mu.usageByUser, name)
			}
		}
	}
	a := &userUsage{bytes: rate.NewLimiter(rate.Inf, math.MaxInt)}
	if per := l.config.BytesPerSecond.Value(); per > 0 {
		a.bytes = rate.NewLimiter(rate.Limit(per), int(l.config.BurstBytes.Value()))
	}
	l.mu.usageByUser[user] = a
	return a
}

const retryAfter = 1

// beginRequest counts a request, or returns a 429 error that names the exceeded limit.
func (l *limits) beginRequest(user string, watch bool) (*userUsage, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	usage := l.usageLocked(user)
	switch {
	case watch && l.config.Watches > 0 && usage.watches >= l.config.Watches:
		return nil, l.reject("watches", retryAfter, "user %q has %d concurrent watches, which is the limit",
			user, usage.watches)
	case watch && l.config.TotalWatches > 0 && l.mu.watches >= l.config.TotalWatches:
		return nil, l.reject("totalWatches", retryAfter, "there are %d concurrent watches, which is the limit",
			l.mu.watches)
	case !watch && l.config.Requests > 0 && usage.requests >= l.config.Requests:
		return nil, l.reject("requests", retryAfter,
			"user %q has %d concurrent requests, which is the limit", user, usage.requests)
	}
	if tokens := usage.bytes.Tokens(); usage.bytes.Limit() != rate.Inf && tokens < 0 {
		wait := int(math.Ceil(-tokens / float64(usage.bytes.Limit())))
		return nil, l.reject("bytesPerSecond", wait, "user %q has received too many bytes", user)
	}
	if watch {
		usage.watches++
		l.mu.watches++
	} else {
		usage.requests++
	}
	return usage, nil
}

// reject counts a rejected request, and returns the 429 error.
func (l *limits) reject(limit string, seconds int, format string, args ...any) error {
	l.rejected.WithLabelValues(limit).Inc()
	text := fmt.Sprintf(format, args...)
	return apierrors.NewTooManyRequests(fmt.Sprintf("crdcached: %s (limits.%s of its config): retry after %d s", text, limit, seconds), seconds)
}

// counts returns the numbers of watches and users.
func (l *limits) counts() (watches, users int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.watches, len(l.mu.usageByUser)
}

func (l *limits) endRequest(usage *userUsage, watch bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if watch {
		usage.watches--
		l.mu.watches--
	} else {
		usage.requests--
	}
}

func (l *limits) serve(w http.ResponseWriter, r *http.Request, user string, watch bool, next http.Handler) {
	a, err := l.beginRequest(user, watch)
	if err != nil {
		readapi.WriteError(w, r, err)
		return
	}
	defer l.endRequest(a, watch)
	next.ServeHTTP(&meteredWriter{ResponseWriter: w, request: r, usage: a, waitsForBudget: watch,
		writeTimeout: l.writeTimeout}, r)
}

type meteredWriter struct {
	http.ResponseWriter
	request *http.Request
	usage   *userUsage
	// waitsForBudget is set for watches, whose writes wait while the user is above the byte limit.
	waitsForBudget bool
	// writeTimeout is the write timeout for forwarded responses. Responses from the cache have their own.
	writeTimeout time.Duration
}

// Unwrap is called by http.ResponseController.
func (w *meteredWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *meteredWriter) Write(data []byte) (n int, err error) {
	if err := w.reserve(len(data)); err != nil {
		return 0, err
	}
	err = w.writeWithDeadline(func() error {
		n, err = w.ResponseWriter.Write(data)
		return err
	})
	return n, err
}

// FlushError is called by http.ResponseController.
func (w *meteredWriter) FlushError() error {
	return w.writeWithDeadline(http.NewResponseController(w.ResponseWriter).Flush)
}

// writeWithDeadline writes with a deadline, unless the cache has set one. It removes the deadline, because
// HTTP/2 ends a stream when a deadline passes, even if nothing is being written.
func (w *meteredWriter) writeWithDeadline(write func() error) error {
	if w.Header().Get(servedHeader) == servedByCache {
		return write()
	}
	controller := http.NewResponseController(w.ResponseWriter)
	_ = controller.SetWriteDeadline(time.Now().Add(w.writeTimeout)) // all servers here support deadlines
	defer func() { _ = controller.SetWriteDeadline(time.Time{}) }()
	return write()
}

// The response header that names the source of the response.
const (
	servedHeader  = "Crdcache-Served"
	servedByCache = "cache"
)

// reserve subtracts bytes from the limit, and waits if waitsForBudget is set.
func (w *meteredWriter) reserve(n int) error {
	if w.usage.bytes.Limit() == rate.Inf {
		return nil
	}
	var delay time.Duration
	for now := time.Now(); n > 0; {
		part := min(n, w.usage.bytes.Burst())
		delay = w.usage.bytes.ReserveN(now, part).DelayFrom(now)
		n -= part
	}
	if !w.waitsForBudget || delay <= 0 {
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-w.request.Context().Done():
		return w.request.Context().Err()
	}
}
