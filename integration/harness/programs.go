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

// Kubectl runs kubectl as the admin and returns its stdout. It fails the test if kubectl fails. Calls share
// no discovery cache.
func Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
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

// KubectlPath returns the path of kubectl.
func KubectlPath(t testing.TB) string {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := locateKubectl(os.Getenv, isProgram, root)
	if err != nil {
		if isSandboxRequired(os.Getenv) {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return kubectl
}

// Crdcache returns the path of the crdcache binary. The first call builds it.
func Crdcache(t testing.TB) string {
	t.Helper()
	s := currentSuite(t)
	s.cli.once.Do(func() { s.cli.path, s.cli.err = buildProgram(s.dir, ".", "crdcache") })
	if s.cli.err != nil {
		t.Fatal(s.cli.err)
	}
	return s.cli.path
}

// Crdcached returns the path of the crdcached binary, which is CRDCACHE_CRDCACHED_BIN if that is set.
// Otherwise the first call builds it, which takes minutes without a build cache.
func Crdcached(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("CRDCACHE_CRDCACHED_BIN"); path != "" {
		return path
	}
	s := currentSuite(t)
	s.crdcached.once.Do(func() {
		s.crdcached.path, s.crdcached.err = buildProgram(s.dir, "server",
			"crdcached")
	})
	if s.crdcached.err != nil {
		t.Fatal(s.crdcached.err)
	}
	return s.crdcached.path
}

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
