package harness

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestKubebuilderAssets runs TestControlPlane in a process of its own, where the control plane comes from
// etcd and kube-apiserver: two scripts around the sandbox binary, which can be either.
func TestKubebuilderAssets(t *testing.T) {
	plane(t) // skips where there is no binary at all
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	where, err := locate(os.Getenv, isProgram, root)
	if err != nil {
		t.Fatal(err)
	}
	assets := where.assets
	if assets == "" {
		assets = t.TempDir()
		writeComponent(t, assets, where.sandbox, "etcd", "etcd")
		writeComponent(t, assets, where.sandbox, "kube-apiserver", "apiserver")
	}
	out, err := runAlone(t, "TestControlPlane", envAssets+"="+assets, envSandbox+"=", envRequire+"=1")
	if err != nil || !strings.Contains(out, "--- PASS: TestControlPlane (") {
		t.Errorf("%v\n%s", err, out)
	}
}

// writeComponent writes a script that becomes a component of a control plane. Such a process ends with its
// standard input, so it gets one that never ends.
func writeComponent(t *testing.T, dir, binary, name, component string) {
	t.Helper()
	fifo := filepath.Join(dir, name+".stdin")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' __component %s '' \"$@\" 0<>'%s'\n", binary, component, fifo)
	if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestWithoutControlPlane(t *testing.T) {
	t.Run("skipped", func(t *testing.T) {
		out, err := runAlone(t, "TestCounting", envSandbox+"=/nowhere", envRequire+"=")
		if err != nil || !strings.Contains(out, "--- SKIP: TestCounting") || !strings.Contains(out, "make sandbox") {
			t.Errorf("%v, want a skip that says what to do\n%s", err, out)
		}
	})
	t.Run("required", func(t *testing.T) {
		out, err := runAlone(t, "TestCounting", envSandbox+"=/nowhere", envRequire+"=1")
		if err == nil || !strings.Contains(out, "--- FAIL: TestCounting") || !strings.Contains(out, "make sandbox") {
			t.Errorf("%v, want a failure that says what to do\n%s", err, out)
		}
	})
	t.Run("not needed", func(t *testing.T) {
		out, err := runAlone(t, "TestGroup", envSandbox+"=/nowhere", envRequire+"=1")
		if err != nil || !strings.Contains(out, "--- PASS: TestGroup") {
			t.Errorf("%v, want a pass\n%s", err, out)
		}
	})
}

// TestSandboxEndsWithTestProcess kills a process that has a control plane, and waits until that is gone.
func TestSandboxEndsWithTestProcess(t *testing.T) {
	if os.Getenv(envSuicide) != "" {
		fmt.Printf("server=%s\n", Config(t).Host)
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	plane(t)
	out, err := runAlone(t, "TestSandboxEndsWithTestProcess", envSuicide+"=1")
	_, address, found := strings.Cut(out, "server=https://")
	if err == nil || !found {
		t.Fatalf("%v, want a killed process that has told its server\n%s", err, out)
	}
	address, _, _ = strings.Cut(address, "\n")
	Eventually(t, func(ctx context.Context) error {
		if listens(ctx, address) {
			return fmt.Errorf("%s still listens", address)
		}
		return nil
	})
}

// envSuicide makes TestSandboxEndsWithTestProcess the process that is killed.
const envSuicide = "CRDCACHE_HARNESS_SUICIDE"

// runAlone runs one test of this package in a new process with more environment variables.
func runAlone(t *testing.T, test string, env ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+test+"$", "-test.v", "-test.count=1")
	cmd.Env = append(os.Environ(), env...)
	cmd.Env = append(cmd.Env, "TMPDIR="+t.TempDir())
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}
