package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	certutil "k8s.io/client-go/util/cert"

	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/test/testcluster"
)

// certificateAuthority is a certificate authority.
type certificateAuthority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newCertificateAuthority(t *testing.T, name string) *certificateAuthority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	certificate, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: name}, key)
	must(t, err)
	return &certificateAuthority{certificate, key}
}

func (s *certificateAuthority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType,
		Bytes: s.certificate.Raw}))
}

func (s *certificateAuthority) issueUserCertificate(t *testing.T, name string) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, SerialNumber: big.NewInt(1), NotBefore: s.certificate.NotBefore,
		NotAfter:    s.certificate.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, s.certificate, s.key.Public(), s.key)
	must(t, err)
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: s.key}
}

// denyingCluster is a cluster that denies all access reviews and records the user of the last review.
type denyingCluster struct {
	*testcluster.Cluster
	mu               sync.Mutex
	lastReviewedUser string
}

func (c *denyingCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		c.Cluster.ServeHTTP(w, r)
		return
	}
	review := &unstructured.Unstructured{}
	_ = json.NewDecoder(r.Body).Decode(&review.Object) // the user is empty for other bodies
	user, _, _ := unstructured.NestedString(review.Object, "spec", "user")
	review.Object["status"] = map[string]any{"allowed": false}
	c.mu.Lock()
	c.lastReviewedUser = user
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(review.Object) // fails only if the server has stopped
}

func (c *denyingCluster) reviewedUser() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastReviewedUser
}

// TestUsersBeforeClientCAs verifies that the server is not ready before it knows the client CAs. A client
// that has connected earlier is identified afterwards, on its open HTTP/1.1 connection.
func TestUsersBeforeClientCAs(t *testing.T) {
	users, proxies := newCertificateAuthority(t, "users"), newCertificateAuthority(t, "proxies")
	backend, err := testcluster.New(t.Context(), testcluster.Options{})
	must(t, err)
	must(t, backend.Load(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": clientCAConfigMap,
			"namespace": clientCANamespace},
		"data": map[string]any{
			clientCAKey: users.pem(), "requestheader-client-ca-file": proxies.pem(),
			"requestheader-allowed-names":        `["proxy"]`,
			"requestheader-username-headers":     `["X-Remote-User"]`,
			"requestheader-group-headers":        `["X-Remote-Group"]`,
			"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
		},
	}}))
	publishCA := make(chan struct{})
	backend.Faults().Add(testcluster.Fault{
		Match:  testcluster.Match{Verbs: []string{"list", "watch", "watch-list"}, Resource: "configmaps"},
		Effect: testcluster.Hold(publishCA),
	})
	cluster := &denyingCluster{Cluster: backend}
	address := startServer(t, cluster)
	dials := 0
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true,
			Certificates: []tls.Certificate{users.issueUserCertificate(t, "alice")}},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			dials++
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}}
	defer client.CloseIdleConnections()
	get := func(path string) (code int, text string) {
		t.Helper()
		answer, err := client.Get("https://" + address + path)
		must(t, err)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		must(t, err)
		return answer.StatusCode, string(body)
	}
	if code, text := get("/readyz?verbose"); code == http.StatusOK ||
		!strings.Contains(text, "[-]user-authorities") {
		t.Errorf("/readyz without client CAs = %d %s, want not ready", code, text)
	}
	if code, text := get("/metrics"); code != http.StatusForbidden || cluster.reviewedUser() != "system:anonymous" {
		t.Errorf("the user without client CAs = %q (%d %s), want system:anonymous", cluster.reviewedUser(),
			code, text)
	}
	close(publishCA)
	for t.Context().Err() == nil {
		if code, _ := get("/readyz"); code == http.StatusOK {
			break
		}
		time.Sleep(5 * time.Millisecond) // pause between polls
	}
	if code, text := get("/metrics"); code != http.StatusForbidden ||
		cluster.reviewedUser() != "alice" || dials != 1 {
		t.Errorf("on connection %d the user is %q, want alice: %d %s", dials, cluster.reviewedUser(), code, text)
	}
}

// TestClusterWithoutClientCAs verifies that the server does not wait for client CAs if its cluster has none.
func TestClusterWithoutClientCAs(t *testing.T) {
	for name, data := range map[string]map[string]any{"no ConfigMap": nil,
		"none in it": {"requestheader-client-ca-file": "a"}} {
		backend, err := testcluster.New(t.Context(), testcluster.Options{})
		must(t, err)
		if data != nil {
			must(t, backend.Load(t.Context(), &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": clientCAConfigMap,
					"namespace": clientCANamespace}, "data": data,
			}}))
		}
		api := httptest.NewServer(backend)
		defer api.Close()
		options := NewOptions().Authentication
		options.RemoteKubeConfigFile = writeKubeconfig(t, api)
		if found, err := newClientCAs(t.Context(), options); err != nil || !found.areLoaded() ||
			options.ClientCert.CAContentProvider != nil {
			t.Errorf("%s: newClientCAs() loaded = %v, error %v, want true", name, found.areLoaded(), err)
		}
		// A lookup of a missing key would log its failure every minute.
		if wants := data != nil; options.SkipInClusterLookup == wants {
			t.Errorf("%s: further lookups are skipped: %v, want %v", name, !wants, wants)
		}
	}
}

func writeKubeconfig(t *testing.T, api *httptest.Server) string {
	t.Helper()
	return writeConfigFile(
		t, fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: %q}}]\ncontexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n", api.URL))
}

// startServer runs a server for a cluster until the test ends, and returns its address.
func startServer(t *testing.T, cluster http.Handler) (address string) {
	t.Helper()
	api := httptest.NewServer(cluster)
	t.Cleanup(func() {
		api.CloseClientConnections()
		api.Close()
	})
	options := NewOptions()
	options.Kubeconfig = writeKubeconfig(t, api)
	options.Config.Types = []string{"namespaces"}
	options.SecureServing.BindAddress, options.SecureServing.BindPort = net.IPv4(127, 0, 0, 1), 0
	s, err := New(t.Context(), options)
	must(t, err)
	testkit.RunUntilEnd(t, s.Run)
	return s.Address().String()
}
