package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestKubebuilderAssets verifies that the control plane runs the programs in KUBEBUILDER_ASSETS. The test
// puts failing scripts there, and expects their error.
func TestKubebuilderAssets(t *testing.T) {
	requireControlPlane(t) // skips without a sandbox
	assets := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver"} {
		script := "#!/bin/sh\necho 'not today'\nexit 1\n"
		if err := os.WriteFile(filepath.Join(assets, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	out, err := runAlone(t, "TestCounting", envAssets+"="+assets, envRequire+"=1")
	if err == nil || !strings.Contains(out, "not today") {
		t.Errorf("%v, want the error of the programs in the folder\n%s", err, out)
	}
}

func TestWithoutControlPlane(t *testing.T) {
	t.Run("skipped", func(t *testing.T) {
		out, err := runAlone(t, "TestCounting", envSandbox+"=/nowhere", envRequire+"=")
		if err != nil || !strings.Contains(out, "--- SKIP: TestCounting") ||
			!strings.Contains(out, "make sandbox") {
			t.Errorf("the test without a control plane: %v, want a skip that names make sandbox\n%s", err,
				out)
		}
	})
	t.Run("required", func(t *testing.T) {
		out, err := runAlone(t, "TestCounting", envSandbox+"=/nowhere", envRequire+"=1")
		if err == nil || !strings.Contains(out, "--- FAIL: TestCounting") ||
			!strings.Contains(out, "make sandbox") {
			t.Errorf("the test without a control plane: %v, want a failure that names make sandbox\n%s", err,
				out)
		}
	})
	t.Run("not needed", func(t *testing.T) {
		out, err := runAlone(t, "TestGroup", envSandbox+"=/nowhere", envRequire+"=1")
		if err != nil || !strings.Contains(out, "--- PASS: TestGroup") {
			t.Errorf("%v, want a pass\n%s", err, out)
		}
	})
}

// TestSandboxEndsWithTestProcess kills a process with a control plane and waits for the end of the control
// plane.
func TestSandboxEndsWithTestProcess(t *testing.T) {
	if os.Getenv(envKilled) != "" {
		fmt.Printf("server=%s\n", Config(t).Host)
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	requireControlPlane(t)
	out, err := runAlone(t, "TestSandboxEndsWithTestProcess", envKilled+"=1")
	_, address, found := strings.Cut(out, "server=https://")
	if err == nil || !found {
		t.Fatalf("%v, want a killed process that has printed the address of its server\n%s", err, out)
	}
	address, _, _ = strings.Cut(address, "\n")
	Eventually(t, func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil
		}
		return errors.Join(fmt.Errorf("%s still listens", address), conn.Close())
	})
}

// envKilled marks the process that TestSandboxEndsWithTestProcess kills.
const envKilled = "CRDCACHE_HARNESS_SUICIDE"

// runAlone runs one test of this package in a new process with additional environment variables.
func runAlone(t *testing.T, test string, env ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*waitLimit)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+test+"$", "-test.v", "-test.count=1")
	cmd.Env = append(os.Environ(), env...)
	cmd.Env = append(cmd.Env, "TMPDIR="+t.TempDir())
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}
