package apitest

import (
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"testing"
)

// ProxyClient returns an HTTP client that reaches a server in memory through a reverse proxy in memory, which
// forwards data immediately. wrap wraps the proxy: it sees each request, and can change the response.
func (s *Server) ProxyClient(t testing.TB, wrap func(http.Handler) http.Handler) *http.Client {
	t.Helper()
	target, err := url.Parse(s.URL)
	must(t, err)
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     s.HTTPClient(t).Transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // tests break watches on purpose
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request,
			_ error) {
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	_, client := startInMemory(t, wrap(proxy))
	return client
}
