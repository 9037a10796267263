package dynamicinformer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/transport"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// requireToken accepts requests with one token.
func requireToken(valid *atomic.Value) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != fmt.Sprint("Bearer ", valid.Load()) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusUnauthorized)
				fmt.Fprint(
					w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// TestTokenIsRefreshed verifies that a token expires every hour, and its file has the next one some time
// later. Meanwhile the factory's condition reports the failure. Afterwards the informer continues with one
// list.
func TestTokenIsRefreshed(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		file := filepath.Join(t.TempDir(), "token")
		write := func(token string) {
			if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var valid atomic.Value
		valid.Store("token 0")
		write("token 0")
		config := server.Config()
		config.BearerTokenFile = file
		client, err := rest.HTTPWrappersForConfig(config,
			server.ProxyClient(t, requireToken(&valid)).Transport)
		if err != nil {
			t.Fatal(err)
		}
		f := newVirtualFactory(t, server, Options{HTTPClient: &http.Client{Transport: client}})
		i := mustInformer(t, f, widgets)
		start(t, f)
		observe(t, i, "at first", 0, briefStatus{State: status.Synced})
		for hour := 1; hour <= 3; hour++ {
			time.Sleep(time.Hour)
			valid.Store(fmt.Sprint("token ", hour))
			server.CloseClientConnections() // the watch ends, and the next one is rejected
			observe(t, i, "expired", 2*time.Minute, briefStatus{status.Synced, status.ReasonUnauthorized, true})
			if c := f.Condition(status.ConditionAuthenticated); c.Status != metav1.ConditionFalse {
				t.Errorf("the condition is %+v, want False", c)
			}
			write(fmt.Sprint("token ", hour))
			observe(t, i, "refreshed", 6*time.Minute, briefStatus{State: status.Synced})
			server.Create(t, widgets, widget("web", fmt.Sprint("w", hour)))
			synctest.Wait()
			if got := len(i.GetStore().ListKeys()); got != hour {
				t.Errorf("there are %d widgets, want %d", got, hour)
			}
		}
		// After a silent watch, the informer requests the server's version with a list of one object.
		versions := count(server, "list "+widgetsPath+"?limit=1")
		if got := count(server, "list "+widgetsPath) +
			count(server, "watch-list "+widgetsPath) - versions; got > 1+3 {
			t.Errorf("%d lists were sent, want at most 4", got)
		}
	})
}

// certificates is a certificate authority for clients.
type certificates struct {
	*testing.T
	folder string
	pool   *x509.CertPool
	ca     *x509.Certificate
	key    *ecdsa.PrivateKey
}

func newCertificates(t *testing.T) *certificates {
	t.Helper()
	c := &certificates{T: t, folder: t.TempDir(), pool: x509.NewCertPool()}
	var err error
	if c.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	c.ca = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign, NotAfter: time.Now().Add(time.Hour),
	}
	c.ca = c.sign(c.ca, &c.key.PublicKey)
	c.pool.AddCert(c.ca)
	return c
}

func (c *certificates) sign(template *x509.Certificate, key *ecdsa.PublicKey) *x509.Certificate {
	c.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, c.ca, key, c.key)
	if err != nil {
		c.Fatal(err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		c.Fatal(err)
	}
	return signed
}

// issue writes a certificate for a user name to the client's file.
func (c *certificates) issue(name string) {
	c.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		c.Fatal(err)
	}
	certificate := c.sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		NotAfter:    time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, &key.PublicKey)
	// The client reads both files, and retries if they do not match. Therefore the key is written first.
	c.write("key", "PRIVATE KEY", private)
	c.write("cert", "CERTIFICATE", certificate.Raw)
}

func (c *certificates) write(name, kind string, der []byte) {
	c.Helper()
	if err := os.WriteFile(filepath.Join(c.folder, name),
		pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		c.Fatal(err)
	}
}

// TestClientCertificateIsRotated verifies that client-go uses a new certificate when it rereads the files and
// closes the connections. The informer continues.
func TestClientCertificateIsRotated(t *testing.T) {
	defer func(was time.Duration) { transport.CertCallbackRefreshDuration = was }(
		transport.CertCallbackRefreshDuration)
	transport.CertCallbackRefreshDuration = 10 * time.Millisecond
	server := apitest.New(t, apitest.Type{GVR: widgets, Kind: "Widget", Namespaced: true})
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	users := make(chan string, 100) // users of watches
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0)}
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if query := r.URL.Query(); query.Get("watch") != "" && query.Get("sendInitialEvents") == "" {
			users <- r.TLS.PeerCertificates[0].Subject.CommonName
		}
		proxy.ServeHTTP(w, r)
	}))
	c := newCertificates(t)
	front.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: c.pool}
	front.Config.ErrorLog = log.New(io.Discard, "", 0)
	front.StartTLS()
	defer front.Close()
	defer front.CloseClientConnections()
	c.issue("first")
	f, err := New(Options{Logger: &discardLog, Config: &rest.Config{
		Host: front.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{
			CertFile: filepath.Join(c.folder, "cert"), KeyFile: filepath.Join(c.folder, "key"),
			CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}),
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	i := startSynced(t, f)
	if user := <-users; user != "first" {
		t.Errorf("the user of the first watch = %q, want first", user)
	}
	c.issue("second")
	for user := range users {
		if user == "second" {
			break
		}
	}
	added := make(chan any, 1)
	if _, err := i.AddEventHandler(
		cache.ResourceEventHandlerFuncs{AddFunc: func(o any) { added <- o }}); err != nil {
		t.Fatal(err)
	}
	server.Create(t, widgets, widget("web", "a"))
	<-added
	if s := i.Status(); s.State != status.Synced {
		t.Errorf("Status() = %+v, want Synced", s)
	}
}
