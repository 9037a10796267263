package testkit

import (
	"compress/gzip"
	"net/http"
	"strings"
)

// ForwardedResponse is a response on its way through a proxy.
type ForwardedResponse struct {
	http.ResponseWriter
	OnWrite func([]byte) (int, error)
	OnFlush func()
}

// Write implements http.ResponseWriter.
func (p ForwardedResponse) Write(data []byte) (int, error) { return p.OnWrite(data) }

// Flush implements http.Flusher.
func (p ForwardedResponse) Flush() { p.OnFlush() }

// Compress returns a proxy that compresses responses. Unless always is set, it compresses only responses to
// requests that accept gzip.
func Compress(always bool) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !always && !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
				next.ServeHTTP(w, r)
				return
			}
			r = r.Clone(r.Context())
			r.Header.Set("Accept-Encoding", "identity") // the response must not be compressed yet
			compressed := gzip.NewWriter(w)
			next.ServeHTTP(ForwardedResponse{ResponseWriter: gzipped{w}, OnWrite: compressed.Write,
				OnFlush: func() {
					_ = compressed.Flush()
					w.(http.Flusher).Flush()
				}}, r)
			_ = compressed.Close()
		})
	}
}

// gzipped sets the headers of a compressed response.
type gzipped struct{ http.ResponseWriter }

func (g gzipped) WriteHeader(status int) {
	g.Header().Del("Content-Length")
	g.Header().Set("Content-Encoding", "gzip")
	g.ResponseWriter.WriteHeader(status)
}
