//go:build unix

package dynamicinformer

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestCredentialPluginFailsAtFirst verifies that the informer retries with the plugin's next credentials.
func TestCredentialPluginFailsAtFirst(t *testing.T) {
	server := apitest.New(t, apitest.Type{GVR: widgets, Kind: "Widget", Namespaced: true})
	var valid atomic.Value
	valid.Store("secret")
	target, err := url.Parse(server.URL)
	must(t, err)
	front := httptest.NewTLSServer(requireToken(&valid)(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1,
		ErrorLog: log.New(io.Discard, "", 0),
	}))
	defer front.Close()
	defer front.CloseClientConnections()
	failed := filepath.Join(t.TempDir(), "failed")
	script := `[ -e "$0" ] || { touch "$0"; echo "not yet" >&2; exit 1; }
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"secret"}}'`
	f, err := New(Options{Logger: &discardLog, Config: &rest.Config{
		Host: front.URL, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
			Bytes: front.Certificate().Raw})},
		ExecProvider: &clientcmdapi.ExecConfig{
			Command: "sh", Args: []string{"-c", script,
				failed}, APIVersion: "client.authentication.k8s.io/v1",
			InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		},
	}})
	must(t, err)
	defer func() {
		if err := f.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	i := startSynced(t, f)
	if s := i.Status(); s.LastError != nil || s.State != status.Synced {
		t.Errorf("Status() = %+v, want Synced", s)
	}
	if _, err := os.Stat(failed); err != nil {
		t.Errorf("the plugin did not fail at first: %v", err)
	}
}
