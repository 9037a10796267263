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
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/transport"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/requests"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestOddServers verifies that with each of these servers, an informer syncs, stays synced for hours, shows
// changes, and does not list repeatedly, unless lists replace watches that a proxy holds back.
func TestOddServers(t *testing.T) {
	for name, tt := range map[string]struct {
		proxy func(http.Handler) http.Handler
		// synced is the maximum duration of the first list, shown the maximum time until the cache shows a
		// change.
		synced, shown time.Duration
		// lists is the maximum number of lists and watch-lists in three hours.
		lists  int
		reason status.Reason
	}{
		"buffers bodies": {proxy: bufferResponses(true), synced: requests.InitialEventsTimeout,
			shown: 21 * time.Second, lists: 6},
		"buffers bodies and headers": {proxy: bufferResponses(false), synced: requests.InitialEventsTimeout,
			shown: 30 * time.Second, lists: 600, reason: status.ReasonPolled},
		"compresses":              {proxy: testkit.Compress(true), lists: 1},
		"drops bookmarks":         {proxy: dropBookmarks, synced: requests.InitialEventsTimeout, lists: 6},
		"closes idle connections": {proxy: cutIdle(30 * time.Second), shown: 2 * time.Second, lists: 6},
	} {
		t.Run(name, func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				server.Create(t, widgets, widget("web", "a"))
				f := newVirtualFactory(t, server, Options{HTTPClient: server.ProxyClient(t, tt.proxy)})
				i := mustInformer(t, f, widgets)
				start(t, f)
				observe(t, i, "at first", tt.synced+2*time.Second, briefStatus{State: status.Synced})
				var states eventLog
				if _, err := f.AddListener(status.Listener{StateChanged: func(_, after status.Status) {
					states.add("%s", after.State)
				}}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				for change := range 9 {
					server.Create(t, widgets, widget("web", strings.Repeat("b", change+1)))
					time.Sleep(tt.shown)
					synctest.Wait()
					if got := len(i.GetStore().ListKeys()); got != change+2 {
						t.Errorf("change %d: there are %d widgets, want %d; the status is %+v", change, got,
							change+2, i.Status())
					}
					time.Sleep(20 * time.Minute)
					observe(t, i, "after 20 minutes", 0, briefStatus{State: status.Synced, Reason: tt.reason})
				}
				if all := states.all(); slices.Contains(all, string(status.Degraded)) {
					t.Errorf("the states are %v, want no Degraded", all)
				}
				// one check for each aborted watch
				checks := count(server, "list "+widgetsPath+"?limit=1")
				lists := count(server, "list "+widgetsPath) - checks +
					count(server, "watch-list "+widgetsPath)
				if lists > tt.lists {
					t.Errorf("%d lists in three hours, want %d at most", lists, tt.lists)
				}
			})
		})
	}
}

// TestThrottledForMinutes verifies that requests pause for as long as the server asks, also for minutes, and
// then continue.
func TestThrottledForMinutes(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		f := newVirtualFactory(t, server, Options{})
		i, throttled := mustInformer(t, f, widgets), mustInformer(t, f, gadgets)
		server.Create(t, widgets, widget("web", "a"))
		throttle := func(path string) {
			busy := fault(path, "", http.StatusTooManyRequests)
			busy.RetryAfter = "120"
			server.AddFaults(busy)
		}
		throttle(gadgetsPath)
		start(t, f)
		observe(t, i, "before", 0, briefStatus{State: status.Synced})
		throttle(widgetsPath)
		server.CloseClientConnections()
		time.Sleep(time.Hour)
		synctest.Wait()
		for _, path := range []string{widgetsPath, gadgetsPath} {
			requests := 0
			for _, verb := range []string{"list ", "watch-list ", "watch "} {
				requests += count(server, verb+path)
			}
			if requests > 32 { // one every two minutes, and the first one
				t.Errorf("%d requests for %s in an hour, want at most 32", requests, path)
			}
		}
		if s := throttled.Status(); s.State != status.Syncing && s.State != status.Degraded ||
			s.Reason != status.ReasonThrottled {
			t.Errorf("after the pause, Status() = %+v, want Synced", s)
		}
		server.Repair()
		observe(t, i, "afterwards", 3*time.Minute, briefStatus{State: status.Synced})
		observe(t, throttled, "afterwards", 0, briefStatus{State: status.Synced})
		if got := len(i.GetStore().ListKeys()); got != 1 {
			t.Errorf("the cache has %d objects, want 1", got)
		}
	})
}

// TestInvalidResponseIsNoContact verifies that a response that cannot be decoded, such as the login page of a
// proxy, does not count as contact with the API server, even with status 200 and a JSON content type.
func TestInvalidResponseIsNoContact(t *testing.T) {
	for name, body := range map[string]string{"a page": "<html>\n<body>Log in\n</html>\n", "a line": "Log in",
		"another object": `{"ok":true}` + "\n"} {
		for _, from := range []string{"once synced", "at startup"} {
			t.Run(name+" "+from, func(t *testing.T) {
				onFakeClock(t, func(t *testing.T, server *apitest.Server) {
					f := newVirtualFactory(t, server, Options{})
					i := mustInformer(t, f, widgets)
					if from == "once synced" {
						start(t, f)
						time.Sleep(time.Minute)
					}
					before := time.Now()
					server.AddFaults(apitest.Fault{Path: widgetsPath, Effect: func(w http.ResponseWriter,
						_ *http.Request, _ http.Handler) {
						w.Header().Set("Content-Type", "application/json")
						_, _ = io.WriteString(w, body)
					}})
					server.CloseClientConnections()
					if from == "at startup" {
						start(t, f)
					}
					time.Sleep(2 * time.Minute)
					for range 60 {
						time.Sleep(1777 * time.Millisecond)
						synctest.Wait()
						s := i.Status()
						if s.State != status.Degraded || s.LastError == nil || s.LastContact.After(before) ||
							s.Stale != (from == "once synced") {
							t.Fatalf("after %v: Status() = %+v, want Degraded without contact",
								time.Since(before), s)
						}
					}
					server.Repair()
					time.Sleep(time.Minute)
					synctest.Wait()
					if s := i.Status(); s.State != status.Synced || s.Stale || !s.LastContact.After(before) {
						t.Errorf("after the recovery: Status() = %+v, want Synced with contact", s)
					}
				})
			})
		}
	}
}

// TestWatchListsStall verifies that what one stalled watch-list has shown holds for the connection: the other
// types are listed without a delay, whatever the traffic, and watch-lists are used again once they work.
func TestWatchListsStall(t *testing.T) {
	for name, proxy := range map[string]func(http.Handler) http.Handler{"drops bookmarks": dropBookmarks,
		"buffers bodies": bufferResponses(true), "buffers bodies and headers": bufferResponses(false)} {
		if testing.Short() && name != "buffers bodies" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var types []apitest.Type
				for n := range 12 {
					gvr := widgets
					gvr.Resource = fmt.Sprintf("widgets%d", n)
					types = append(types, apitest.Type{GVR: gvr, Kind: fmt.Sprint("Widget", n), Namespaced: true})
				}
				server := apitest.NewInMemory(t, types...)
				var healed atomic.Bool
				f := newVirtualFactory(t, server,
					Options{HTTPClient: server.ProxyClient(t, func(next http.Handler) http.Handler {
						odd := proxy(next)
						return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
							map[bool]http.Handler{false: odd, true: next}[healed.Load()].ServeHTTP(w, r)
						})
					})})
				var informers []*Informer
				for _, typ := range types {
					u := widget("web", "a")
					u.SetKind(typ.Kind)
					server.Create(t, typ.GVR, u)
					informers = append(informers, mustInformer(t, f, typ.GVR))
				}
				start(t, f)
				for k := range int(requests.InitialEventsTimeout/time.Second) + 6 {
					time.Sleep(time.Second)
					for n, typ := range types {
						u := widget("web", fmt.Sprint("b", k))
						if u.SetKind(typ.Kind); k%3 == 0 && n%2 == 0 {
							server.Create(t, typ.GVR, u)
						}
					}
				}
				synctest.Wait()
				for _, i := range informers {
					if s := i.Status(); s.State != status.Synced || !strings.Contains(s.Message, "lists replace watch-lists") {
						t.Fatalf("Status() = %+v, want Synced with the reason of the list", s)
					}
				}
				healed.Store(true)
				time.Sleep(61 * time.Minute)
				for _, i := range informers {
					must(t, i.Relist(t.Context()))
					if s := i.Status(); s.State != status.Synced || s.Message != "" {
						t.Errorf("healed: Status() = %+v, want Synced without a message", s)
					}
				}
			})
		})
	}
}

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
			must(t, os.WriteFile(file, []byte(token), 0o600))
		}
		var valid atomic.Value
		valid.Store("token 0")
		write("token 0")
		config := server.Config()
		config.BearerTokenFile = file
		client, err := rest.HTTPWrappersForConfig(config,
			server.ProxyClient(t, requireToken(&valid)).Transport)
		must(t, err)
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
	must(t, err)
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
	must(t, err)
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
