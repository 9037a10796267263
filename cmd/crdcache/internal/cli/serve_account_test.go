//go:build unix

package cli_test

import (
	"encoding/base64"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
)

// TestServeEndsWithAccount checks that a server stops when its exec plugin returns another account's
// credentials, but not when it renews them.
func TestServeEndsWithAccount(t *testing.T) {
	shortRuntimeDir(t)
	cli.SetAccountInterval(t, time.Millisecond)
	address, err := url.Parse(newIndexedServer(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	// The exec plugin's credentials are sent only over TLS.
	server := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(address))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	credentials, kubeconfig := filepath.Join(t.TempDir(), "credentials"), filepath.Join(t.TempDir(),
		"kubeconfig")
	returns := func(claims string) {
		t.Helper()
		token := "x." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".y"
		text := `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"expirationTimestamp":"2020-01-01T00:00:00Z","token":"` + token + `"}}`
		if err := os.WriteFile(credentials+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(credentials+".new", credentials); err != nil {
			t.Fatal(err)
		}
	}
	returns(`{"iss":"i","sub":"reader","iat":1}`)
	file := clientcmdapi.NewConfig()
	file.Clusters["c"], file.Contexts["c"] = &clientcmdapi.Cluster{Server: server.URL,
		InsecureSkipTLSVerify: true}, &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		Command: "cat", Args: []string{credentials}, APIVersion: "client.authentication.k8s.io/v1",
		InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}}
	file.CurrentContext = "c"
	if err := clientcmd.WriteToFile(*file, kubeconfig); err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	ended := serve(t, &stderr, "gz", "--kubeconfig", kubeconfig)
	serving := func() bool {
		return strings.Contains(crdcache(t, "serve", "status", "--kubeconfig", kubeconfig).out, "Synced")
	}
	for !serving() {
		if t.Context().Err() != nil {
			t.Fatal("the server caches no type")
		}
	}
	returns(`{"iss":"i","sub":"reader","iat":2}`)
	if !serving() {
		t.Error("the server is not found with renewed credentials")
	}
	returns(`{"iss":"i","sub":"admin","iat":3}`)
	if code := <-ended; code == cli.ExitOK || !strings.Contains(stderr.String(), "another account") {
		t.Errorf("the server ended with exit code %d, want an error about another account: %s", code,
			stderr.String())
	}
}
