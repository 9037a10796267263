package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Kubectl runs kubectl as the admin, fails the test if that fails, and returns its stdout. Nothing is kept
// of discovery from one call to the next.
func Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, KubectlPath(t), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+Kubeconfig(t), "KUBECACHEDIR="+t.TempDir())
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String()
}

// KubectlPath returns the path of kubectl, for tests that run it in the background.
func KubectlPath(t testing.TB) string {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := locateKubectl(os.Getenv, isProgram, root)
	if err != nil {
		if mustHave(os.Getenv) {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return kubectl
}

// Crdcache returns the path of the crdcache binary, which the first call builds.
func Crdcache(t testing.TB) string {
	t.Helper()
	s := current(t)
	s.cli.once.Do(func() { s.cli.path, s.cli.err = buildProgram(s.dir, ".", "crdcache") })
	if s.cli.err != nil {
		t.Fatal(s.cli.err)
	}
	return s.cli.path
}

// Crdcached returns the path of the crdcached binary: the one that CRDCACHE_CRDCACHED_BIN names, or one that
// the first call builds, which takes minutes where nothing of it is in the build cache.
func Crdcached(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("CRDCACHE_CRDCACHED_BIN"); path != "" {
		return path
	}
	s := current(t)
	s.crdcached.once.Do(func() {
		s.crdcached.path, s.crdcached.err = buildProgram(s.dir, "server",
			"crdcached")
	})
	if s.crdcached.err != nil {
		t.Fatal(s.crdcached.err)
	}
	return s.crdcached.path
}

// buildProgram builds a command of the module in a folder of the repository.
func buildProgram(dir, module, name string) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	cmd := exec.Command("go", "build", "-o", path, "./cmd/"+name)
	cmd.Dir = filepath.Join(root, module)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", errors.Join(fmt.Errorf("building %s: %w", name, err), errors.New(string(out)))
	}
	return path, nil
}
