// Package crdcached_test asks a crdcached and the API server behind it the same, as the same users, and
// compares the answers. Stock clients read from it: client-go's informers, controller-runtime's managers, and
// clients that change between the API server and two servers of caches while all of them are killed. Others
// attack it, and measure its load.
package crdcached_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crdcache/crdcache/integration/crdcached/running"
)

// believed signs the certificates of users whom the API server believes.
var believed *authority

func TestMain(m *testing.M) {
	if os.Getenv(envAddress) != "" {
		os.Exit(serve())
	}
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	running.Main(m, func(folder string) (err error) {
		if believed, err = newAuthority(folder, "client-ca.crt"); err != nil {
			return err
		}
		// The control plane, which starts with the first test that needs it, takes its flags from there.
		const flags = "CRDCACHE_APISERVER_ARGS"
		return os.Setenv(flags, os.Getenv(flags)+" client-ca-file="+filepath.Join(folder, "client-ca.crt"))
	})
}
