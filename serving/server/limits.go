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

	"github.com/crdcache/crdcache/serving/readapi"
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

// userUsage counts the concurrent requests and the written bytes of a user. The lock of limits guards the
// counts.
type userUsage struct {
	requests, watches int
	// bytes limits the written bytes. It has a negative number of tokens above the limit.
	bytes *rate.Limiter
}

func newLimits(config Limits, writeTimeout time.Duration) *limits {
	l := &limits{config: config, writeTimeout: writeTimeout,
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "crdcached_refused_requests_total",
			Help: "Requests that were refused because a user, or all users together, exceeded the limit.",
		}, []string{"limit"})}
	l.mu.usageByUser = map[string]*userUsage{}
	return l
}

const maxIdleUsers = 1000

// usageLocked returns the usage of a user. It adds missing users.
func (l *limits) usageLocked(user string) *userUsage {
	if usage := l.mu.usageByUser[user]; usage != nil {
		return usage
	}
	if len(l.mu.usageByUser) >= maxIdleUsers {
		for name, usage := range l.mu.usageByUser {
			if usage.requests+usage.watches == 0 && usage.bytes.Tokens() >= float64(usage.bytes.Burst()) {
				delete(l.mu.usageByUser, name)
			}
		}
	}
	usage := &userUsage{bytes: rate.NewLimiter(rate.Inf, math.MaxInt)}
	if bytesPerSecond := l.config.BytesPerSecond.Value(); bytesPerSecond > 0 {
		usage.bytes = rate.NewLimiter(rate.Limit(bytesPerSecond), int(l.config.BurstBytes.Value()))
	}
	l.mu.usageByUser[user] = usage
	return usage
}

const retryAfterSeconds = 1

// beginRequest counts a request, or returns a 429 error that names the exceeded limit.
func (l *limits) beginRequest(user string, isWatch bool) (*userUsage, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	usage := l.usageLocked(user)
	switch {
	case isWatch && l.config.Watches > 0 && usage.watches >= l.config.Watches:
		return nil, l.reject("watches", retryAfterSeconds,
			"user %q has %d concurrent watches, which is the limit",
			user, usage.watches)
	case isWatch && l.config.TotalWatches > 0 && l.mu.watches >= l.config.TotalWatches:
		return nil, l.reject("totalWatches", retryAfterSeconds,
			"there are %d concurrent watches, which is the limit",
			l.mu.watches)
	case !isWatch && l.config.Requests > 0 && usage.requests >= l.config.Requests:
		return nil, l.reject("requests", retryAfterSeconds,
			"user %q has %d concurrent requests, which is the limit", user, usage.requests)
	}
	if tokens := usage.bytes.Tokens(); usage.bytes.Limit() != rate.Inf && tokens < 0 {
		waitSeconds := int(math.Ceil(-tokens / float64(usage.bytes.Limit())))
		return nil, l.reject("bytesPerSecond", waitSeconds, "user %q has received too many bytes", user)
	}
	if isWatch {
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

func (l *limits) countUsage() (watches, users int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.watches, len(l.mu.usageByUser)
}

func (l *limits) endRequest(usage *userUsage, isWatch bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if isWatch {
		usage.watches--
		l.mu.watches--
	} else {
		usage.requests--
	}
}

func (l *limits) serveLimited(w http.ResponseWriter, r *http.Request, user string, isWatch bool,
	next http.Handler) {
	usage, err := l.beginRequest(user, isWatch)
	if err != nil {
		readapi.WriteError(w, r, err)
		return
	}
	defer l.endRequest(usage, isWatch)
	next.ServeHTTP(&meteredWriter{ResponseWriter: w, request: r, usage: usage, waitsForBudget: isWatch,
		writeTimeout: l.writeTimeout}, r)
}

type meteredWriter struct {
	http.ResponseWriter
	request *http.Request
	usage   *userUsage
	// waitsForBudget is set for watches. Their writes wait while the user is above the byte limit.
	waitsForBudget bool
	// writeTimeout is the write timeout of forwarded responses. The cache sets the timeout of its
	// responses.
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

// writeWithDeadline writes with a deadline, unless the cache has set one. Afterwards it removes the deadline,
// because HTTP/2 ends a stream when a deadline passes, even without a write.
func (w *meteredWriter) writeWithDeadline(write func() error) error {
	if w.Header().Get(servedHeader) == servedByCache {
		return write()
	}
	controller := http.NewResponseController(w.ResponseWriter)
	_ = controller.SetWriteDeadline(time.Now().Add(w.writeTimeout)) // all servers here support deadlines
	defer func() { _ = controller.SetWriteDeadline(time.Time{}) }()
	return write()
}

const (
	servedHeader  = "Crdcache-Served"
	servedByCache = "cache"
)

func (w *meteredWriter) reserve(n int) error {
	if w.usage.bytes.Limit() == rate.Inf {
		return nil
	}
	var delay time.Duration
	for now := time.Now(); n > 0; {
		chunk := min(n, w.usage.bytes.Burst())
		delay = w.usage.bytes.ReserveN(now, chunk).DelayFrom(now)
		n -= chunk
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
