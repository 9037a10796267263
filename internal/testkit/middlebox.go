package testkit

import (
	"compress/gzip"
	"net/http"
	"strings"
)

// forwardedResponse is a response on its way through a proxy.
type forwardedResponse struct {
	http.ResponseWriter
	write func([]byte) (int, error)
	flush func()
}

func (p forwardedResponse) Write(data []byte) (int, error) { return p.write(data) }
func (p forwardedResponse) Flush()                         { p.flush() }

// Compress returns a proxy that compresses responses: to requests that accept it, or all of them.
func Compress(unasked bool) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !unasked && !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
				next.ServeHTTP(w, r)
				return
			}
			r = r.Clone(r.Context())
			r.Header.Set("Accept-Encoding", "identity") // the response must not be compressed yet
			compressed := gzip.NewWriter(w)
			next.ServeHTTP(forwardedResponse{ResponseWriter: gzipped{w}, write: compressed.Write,
				flush: func() {
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
