// Package e2e tests the built binary with real processes and a real API server. CRDCACHE_SANDBOX_BIN is the
// path of the binary. Without it, the tests build all programs.
package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binary is the path of the sandbox under test.
var binary string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

// run is a separate function so that its deferred calls run before the process exits.
func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sandbox-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if binary = os.Getenv("CRDCACHE_SANDBOX_BIN"); binary == "" {
		binary = filepath.Join(dir, "sandbox")
		if err := build(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	// Etcd must ignore its configuration variables in the environment.
	if err := os.Setenv("ETCD_LISTEN_CLIENT_URLS", "http://127.0.0.1:1"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stopShared()
	return m.Run()
}

func build(folder string) error {
	cmd := exec.Command("../build.sh", folder)
	cmd.Stderr = os.Stderr
	return cmd.Run()
}
