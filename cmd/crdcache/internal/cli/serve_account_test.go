//go:build unix

package cli_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/serve"
)

// TestServeEndsWithAccount checks that a server stops when its exec plugin returns another account's
// credentials, but not when it renews them, and not while the API server does not report it.
func TestServeEndsWithAccount(t *testing.T) {
	jwt := func(account string, n int) string {
		claims := fmt.Sprintf(`{"iss":"i","sub":%q,"iat":%d}`, account, n)
		return "x." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".y"
	}
	opaque := func(account string, n int) string { return fmt.Sprint(account, "-", n) }
	t.Run("JWT", func(t *testing.T) { testServeEndsWithAccount(t, jwt, 0) })
	t.Run("opaque", func(t *testing.T) { testServeEndsWithAccount(t, opaque, 5) })
}

// testServeEndsWithAccount checks this with an outage, in which that number of requests for the account fail.
func testServeEndsWithAccount(t *testing.T, token func(account string, n int) string, outageRequests int64) {
	shortRuntimeDir(t)
	serve.AccountInterval = time.Millisecond
	address, err := url.Parse(newIndexedServer(t).URL)
	must(t, err)
	// The exec plugin's credentials are sent only over TLS.
	var failing atomic.Int64
	outageEnded := make(chan struct{})
	proxy := httputil.NewSingleHostReverseProxy(address)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/selfsubjectreviews") {
			proxy.ServeHTTP(w, r)
			return
		}
		account, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), "-")
		w.Header().Set("Content-Type", "application/json")
		if failing.Load() > 0 {
			if failing.Add(-1) == 0 {
				close(outageEnded)
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview","status":{"userInfo":{"username":%q}}}`, account)
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	credentials, kubeconfig := filepath.Join(t.TempDir(), "credentials"), filepath.Join(t.TempDir(),
		"kubeconfig")
	setCredentials := func(account string, n int) {
		t.Helper()
		text := `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"expirationTimestamp":"2020-01-01T00:00:00Z","token":"` + token(account, n) + `"}}`
		must(t, os.WriteFile(credentials+".new", []byte(text), 0o600))
		must(t, os.Rename(credentials+".new", credentials))
	}
	setCredentials("reader", 1)
	file := clientcmdapi.NewConfig()
	file.Clusters["c"], file.Contexts["c"] = &clientcmdapi.Cluster{Server: server.URL,
		InsecureSkipTLSVerify: true}, &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		Command: "cat", Args: []string{credentials}, APIVersion: "client.authentication.k8s.io/v1",
		InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}}
	file.CurrentContext = "c"
	must(t, clientcmd.WriteToFile(*file, kubeconfig))
	var stderr strings.Builder
	exitCode := startServe(t, &stderr, "gz", "--kubeconfig", kubeconfig)
	serving := func() bool {
		return strings.Contains(crdcache(t, "serve", "status", "--kubeconfig", kubeconfig).out, "Synced")
	}
	for !serving() {
		if t.Context().Err() != nil {
			t.Fatal("the server caches no type")
		}
	}
	if failing.Store(outageRequests); outageRequests > 0 {
		select {
		case <-outageEnded:
		case code := <-exitCode:
			t.Fatalf("the server ended with exit code %d in an outage: %s", code, stderr.String())
		}
	}
	setCredentials("reader", 2)
	if !serving() {
		t.Error("the server is not found with renewed credentials")
	}
	setCredentials("admin", 3)
	if code := <-exitCode; code == cli.ExitOK || !strings.Contains(stderr.String(), "another account") {
		t.Errorf("the server ended with exit code %d, want an error about another account: %s", code,
			stderr.String())
	}
}
