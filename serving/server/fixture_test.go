package server

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/test/testcluster"
)

// apiServer is an in-memory API server. The token of a user is the user's name. "nobody" has no rights.
type apiServer struct {
	*httptest.Server
	cluster *testcluster.Cluster
	// audiences are the audiences of the last TokenReview.
	audiences atomic.Pointer[[]string]
	// blocked, if not nil, delays discovery until it is closed.
	blocked chan struct{}
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	cluster, err := testcluster.New(t.Context(),
		testcluster.Options{Paths: []string{"../../testdata/crds", "../../testdata/objects"}})
	must(t, err)
	a := &apiServer{cluster: cluster}
	a.Server = httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(func() { a.CloseClientConnections(); a.Close() })
	return a
}

func (a *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/tokenreviews"):
		var review authenticationv1.TokenReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		a.audiences.Store(&review.Spec.Audiences)
		review.Status = authenticationv1.TokenReviewStatus{
			Authenticated: review.Spec.Token != "wrong", Audiences: review.Spec.Audiences,
			User: authenticationv1.UserInfo{Username: review.Spec.Token, Groups: []string{"testers"}},
		}
		if !review.Status.Authenticated {
			review.Status.Error = "the token is wrong"
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	case strings.HasSuffix(r.URL.Path, "/subjectaccessreviews"):
		var review authorizationv1.SubjectAccessReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		review.Status.Allowed = review.Spec.User != "nobody"
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	default:
		if strings.HasPrefix(r.URL.Path, "/apis") && a.blocked != nil {
			select {
			case <-a.blocked:
			case <-r.Context().Done():
				return
			}
		}
		a.cluster.ServeHTTP(w, r)
	}
}

// stop stops the API server. Connections are then refused.
func (a *apiServer) stop() {
	_ = a.Listener.Close()
	a.CloseClientConnections()
}

// daemon is a running Server.
type daemon struct {
	*testing.T
	server *Server
	client *http.Client
}

func startDaemon(t *testing.T, a *apiServer, config Config) *daemon {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	file := clientcmdapi.NewConfig()
	file.Clusters["c"], file.Contexts["c"] = &clientcmdapi.Cluster{Server: a.URL},
		&clientcmdapi.Context{Cluster: "c"}
	file.CurrentContext = "c"
	must(t, clientcmd.WriteToFile(*file, kubeconfig))
	options := NewOptions()
	options.Kubeconfig, options.Config = kubeconfig, config
	options.SecureServing.BindAddress, options.SecureServing.BindPort = net.IPv4(127, 0, 0, 1), 0
	s, err := New(t.Context(), options)
	must(t, err)
	testkit.RunUntilEnd(t, s.Run)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	return &daemon{t, s, &http.Client{Transport: transport}}
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newConfig(types ...string) Config {
	config := DefaultConfig()
	config.Types = types
	return config
}

// response is the response to a request.
type response struct {
	code   int
	header http.Header
	body   []byte
}

func (r response) status() (s metav1.Status) {
	_ = json.Unmarshal(r.body, &s)
	return s
}

// request sends a request as a user. It sends no body if body is empty.
func (d *daemon) request(user, method, path, body string) response {
	d.Helper()
	request, err := http.NewRequestWithContext(d.Context(), method, "https://"+d.server.Address().String()+
		path, bytes.NewBufferString(body))
	must(d, err)
	if user != "" {
		request.Header.Set("Authorization", "Bearer "+user)
	}
	answer, err := d.client.Do(request)
	must(d, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(d, err)
	return response{answer.StatusCode, answer.Header, text}
}

func (d *daemon) awaitReady() {
	d.Helper()
	for d.server.cache.readyError() != nil {
		if d.Context().Err() != nil {
			d.Fatal("the types are not cached in time")
		}
		d.request("", http.MethodGet, "/readyz", "") // limits the polling rate
	}
}
