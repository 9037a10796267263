// Package crdcached_test sends the same requests, as the same users, to crdcached and to its API server, and
// compares the answers. Stock clients read from crdcached: client-go's informers, controller-runtime's
// managers, and clients that alternate between the API server and two cache servers while all three are
// killed. Other tests attack crdcached or measure its load.
package crdcached_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// trustedAuthority signs client certificates that the API server trusts.
var trustedAuthority *authority

func TestMain(m *testing.M) {
	if os.Getenv(envAddress) != "" {
		os.Exit(serveUntilStdinEnds())
	}
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	harness.Main(m, func(folder string) (err error) {
		if trustedAuthority, err = newAuthority(folder, "client-ca.crt"); err != nil {
			return err
		}
		proxies, err := newAuthority(folder, "proxy-ca.crt")
		if err != nil {
			return err
		}
		certificate, key, err := proxies.sign("front-proxy", time.Now().Add(time.Hour))
		if err != nil {
			return err
		}
		if err := errors.Join(os.WriteFile(filepath.Join(folder, "proxy.crt"), certificate, 0o600),
			os.WriteFile(filepath.Join(folder, "proxy.key"), key, 0o600)); err != nil {
			return err
		}
		// The control plane, which starts with the first test that needs it, reads its flags from this
		// variable.
		const flags = "CRDCACHE_APISERVER_ARGS"
		return os.Setenv(flags, os.Getenv(flags)+strings.ReplaceAll(" client-ca-file=$/client-ca.crt"+
			" requestheader-client-ca-file=$/proxy-ca.crt proxy-client-cert-file=$/proxy.crt"+
			" proxy-client-key-file=$/proxy.key requestheader-allowed-names=front-proxy"+
			" requestheader-username-headers=X-Remote-User requestheader-group-headers=X-Remote-Group"+
			" requestheader-extra-headers-prefix=X-Remote-Extra-", "$", folder))
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
