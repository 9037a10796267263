// Package crdcached_test asks a crdcached and the API server behind it the same, as the same users, and compares the answers.
package crdcached_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/crdcache/crdcache/integration/crdcached/running"
)

// believed signs the certificates of users whom the API server believes.
var believed *authority

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "crdcached-")
	if err == nil {
		believed, err = newAuthority(folder, "client-ca.crt")
	}
	if err == nil {
		// The control plane, which starts with the first test that needs it, takes its flags from there.
		const flags = "CRDCACHE_APISERVER_ARGS"
		err = os.Setenv(flags, os.Getenv(flags)+" client-ca-file="+filepath.Join(folder, "client-ca.crt"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	running.Main(m)
}
