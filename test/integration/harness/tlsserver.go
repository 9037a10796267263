package harness

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TLSServer is an HTTPS server on loopback that an API server calls: a webhook or an aggregated API.
type TLSServer struct {
	// Port stays the same after Restart.
	Port int
	// URL is the address for a webhook's client configuration.
	URL string
	// CA is the trusted certificate in PEM.
	CA []byte

	handler http.Handler
	server  *httptest.Server
}

// NewTLSServer starts a server that ends with the test.
func NewTLSServer(t testing.TB, handler http.Handler) *TLSServer {
	t.Helper()
	s := &TLSServer{handler: handler}
	s.listen(t, "127.0.0.1:0")
	t.Cleanup(s.Stop)
	s.Port = s.server.Listener.Addr().(*net.TCPAddr).Port
	s.URL = s.server.URL
	s.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})
	return s
}

// Stop closes all connections and refuses new ones until Restart is called.
func (s *TLSServer) Stop() {
	s.server.CloseClientConnections()
	s.server.Close()
}

// BreakConnections closes all connections. The server accepts new ones.
func (s *TLSServer) BreakConnections() { s.server.CloseClientConnections() }

// Restart listens on the same port again after Stop.
func (s *TLSServer) Restart(t testing.TB) {
	t.Helper()
	s.listen(t, s.server.Listener.Addr().String())
}

func (s *TLSServer) listen(t testing.TB, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	must(t, err)
	s.server = httptest.NewUnstartedServer(s.handler)
	_ = s.server.Listener.Close()
	s.server.Listener = listener
	s.server.Config.ErrorLog = log.New(io.Discard, "", 0) // the API server closes connections at any time
	s.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	s.server.StartTLS()
}
