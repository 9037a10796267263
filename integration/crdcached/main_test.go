// Package crdcached_test asks a crdcached and the API server behind it the same, as the same users, and compares the answers.
package crdcached_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/crdcache/crdcache/integration/crdcached/running"
)

// believed signs the certificates of users whom the API server believes.
var believed *authority

func TestMain(m *testing.M) {
	running.Main(m, func(folder string) (err error) {
		if believed, err = newAuthority(folder, "client-ca.crt"); err != nil {
			return err
		}
		// The control plane, which starts with the first test that needs it, takes its flags from there.
		const flags = "CRDCACHE_APISERVER_ARGS"
		return os.Setenv(flags, os.Getenv(flags)+" client-ca-file="+filepath.Join(folder, "client-ca.crt"))
	})
}
