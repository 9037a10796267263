package server

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// watchLimits limits the duration of watches, so that revoked access takes effect soon.
type watchLimits struct {
	min, max time.Duration
	// servingCtx ends before the server, so that watches end first.
	servingCtx context.Context
}

// watchGrace is how long a watch may exceed its time limit before its connection is closed.
const watchGrace = 10 * time.Second

// limit ends watches after a random time, or at the earlier timeout of the client. They end like the watches
// of an API server, so clients resume them.
func (t *watchLimits) limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		duration := t.randomDuration()
		params := r.URL.Query()
		text := params.Get("timeoutSeconds")
		seconds, err := strconv.ParseInt(text, 10, 64)
		switch {
		case text != "" && err != nil:
			// next answers with the error.
		case seconds > 0 && seconds <= int64(duration/time.Second):
			duration = time.Duration(seconds) * time.Second
		default:
			r = r.Clone(r.Context())
			params.Set("timeoutSeconds", strconv.FormatInt(max(1, int64(duration/time.Second)), 10))
			r.URL.RawQuery = params.Encode()
		}
		ctx, cancel := t.watchContext(r.Context(), duration+watchGrace)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

const lastBookmarkTimeout = time.Second

func (t *watchLimits) randomDuration() time.Duration { return t.min + rand.N(t.max-t.min+1) }

// watchContext returns a context that ends with its parent, after duration, or with the server.
func (t *watchLimits) watchContext(parent context.Context,
	duration time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(parent, duration)
	stopWaiting := context.AfterFunc(t.servingCtx, func() { time.AfterFunc(lastBookmarkTimeout, cancel) })
	return ctx, func() { stopWaiting(); cancel() }
}
