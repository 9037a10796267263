package harness

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"testing"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

func TestTLSServer(t *testing.T) {
	s := NewTLSServer(t, http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	}))
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(s.CA) {
		t.Fatal("the CA is not a certificate")
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	get := func() error {
		response, err := client.Get(s.URL)
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusTeapot {
			t.Errorf("response = %s, want the handler's", response.Status)
		}
		return response.Body.Close()
	}
	if err := get(); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if err := get(); !utilnet.IsConnectionRefused(err) {
		t.Errorf("request to a stopped server: %v, want a refused connection", err)
	}
	s.Restart(t)
	if err := get(); err != nil {
		t.Error(err)
	}
}
