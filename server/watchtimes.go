package server

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// watchTimes bounds how long watches last, so that a user who has lost rights soon has none of what they
// gave.
type watchTimes struct {
	min, max time.Duration
	// serving ends before the server does: its watches end first.
	serving context.Context
}

// lateness is how much longer than it was told a watch may take to end before it is cut.
const lateness = 10 * time.Second

// bound has watches end after a random time, or earlier where the client asks for that. They end as those of
// an API server do: clients go on from where they are.
func (t *watchTimes) bound(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lasts := t.random()
		params := r.URL.Query()
		text := params.Get("timeoutSeconds")
		seconds, err := strconv.ParseInt(text, 10, 64)
		switch {
		case text != "" && err != nil:
			// The answer is what is wrong with it.
		case seconds > 0 && seconds <= int64(lasts/time.Second):
			lasts = time.Duration(seconds) * time.Second
		default:
			r = r.Clone(r.Context())
			params.Set("timeoutSeconds", strconv.FormatInt(max(1, int64(lasts/time.Second)), 10))
			r.URL.RawQuery = params.Encode()
		}
		ctx, cancel := t.context(r.Context(), lasts+lateness)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// lastBookmark is the time that a watch has for its last bookmark when the server ends.
const lastBookmark = time.Second

// random is how long a watch lasts.
func (t *watchTimes) random() time.Duration { return t.min + rand.N(t.max-t.min+1) }

// context ends with another one, after a time, or with the server.
func (t *watchTimes) context(parent context.Context,
	lasts time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(parent, lasts)
	unlink := context.AfterFunc(t.serving, func() { time.AfterFunc(lastBookmark, cancel) })
	return ctx, func() { unlink(); cancel() }
}
