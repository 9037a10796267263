package dynamicinformer

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/test/testcluster"
)

// bufferResponses returns a proxy that forwards responses only in full chunks of 4 KiB.
// It forwards the headers immediately if headFirst is set, and otherwise with the first chunk.
func bufferResponses(headFirst bool) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var unsent bytes.Buffer
			pass := func() {
				_, _ = unsent.WriteTo(w)
				w.(http.Flusher).Flush()
			}
			write := func(data []byte) (int, error) {
				unsent.Write(data)
				if unsent.Len() >= 4096 {
					pass()
				}
				return len(data), nil
			}
			flush := func() {
				if headFirst {
					w.(http.Flusher).Flush()
				}
			}
			next.ServeHTTP(testkit.ForwardedResponse{ResponseWriter: w, OnWrite: write, OnFlush: flush}, r)
			pass()
		})
	}
}

// dropBookmarks removes the bookmarks from watches, like a proxy or an old server, even the one at the end of
// a watch-list.
func dropBookmarks(next http.Handler) http.Handler {
	drop := testcluster.DropBookmarks()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			next.ServeHTTP(w, r)
			return
		}
		drop(w, r, next)
	})
}

// cutIdle returns a load balancer that closes idle connections.
func cutIdle(idle time.Duration) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cut := context.WithCancel(r.Context())
			defer cut()
			timer := time.AfterFunc(idle, cut)
			defer timer.Stop()
			write := func(data []byte) (int, error) {
				timer.Reset(idle)
				return w.Write(data)
			}
			next.ServeHTTP(testkit.ForwardedResponse{ResponseWriter: w, OnWrite: write,
				OnFlush: w.(http.Flusher).Flush}, r.WithContext(ctx))
		})
	}
}
