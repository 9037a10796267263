package dynamicinformer

import (
	"bytes"
	"context"
	"net/http"
	"time"
)

// forwardedResponse is a response on its way through a proxy.
type forwardedResponse struct {
	http.ResponseWriter
	write func([]byte) (int, error)
	flush func()
}

func (p forwardedResponse) Write(data []byte) (int, error) { return p.write(data) }
func (p forwardedResponse) Flush()                         { p.flush() }

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
			next.ServeHTTP(forwardedResponse{ResponseWriter: w, write: func(data []byte) (int, error) {
				unsent.Write(data)
				if unsent.Len() >= 4096 {
					pass()
				}
				return len(data), nil
			}, flush: func() {
				if headFirst {
					w.(http.Flusher).Flush()
				}
			}}, r)
			pass()
		})
	}
}

// dropBookmarks removes the bookmarks from watches, like a proxy or an old server, even the one at the end of
// a watch-list.
func dropBookmarks(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			next.ServeHTTP(w, r)
			return
		}
		var line []byte
		next.ServeHTTP(forwardedResponse{ResponseWriter: w, write: func(data []byte) (int, error) {
			for piece := range bytes.Lines(data) {
				line = append(line, piece...)
				if !bytes.HasSuffix(line, []byte("\n")) {
					break
				}
				if !bytes.Contains(line, []byte(`"type":"BOOKMARK"`)) {
					if _, err := w.Write(line); err != nil {
						return 0, err
					}
				}
				line = line[:0]
			}
			return len(data), nil
		}, flush: w.(http.Flusher).Flush}, r)
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
			next.ServeHTTP(forwardedResponse{ResponseWriter: w, write: func(data []byte) (int, error) {
				timer.Reset(idle)
				return w.Write(data)
			}, flush: w.(http.Flusher).Flush}, r.WithContext(ctx))
		})
	}
}
