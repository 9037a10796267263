package harness

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
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

func KubectlPath(t testing.TB) string {
	t.Helper()
	kubectl, err := locateKubectl(os.Getenv)
	if err != nil {
		if os.Getenv(envRequire) == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return kubectl
}

// Crdcache returns the path of the crdcache binary, which is CRDCACHE_BIN if that is set. Otherwise the first
// call builds it.
func Crdcache(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("CRDCACHE_BIN"); path != "" {
		return path
	}
	s := currentSuite(t)
	return s.cli.build(t, s.dir, "cmd/crdcache", ".")
}

// Crdcached returns the path of the crdcached binary, which is CRDCACHE_CRDCACHED_BIN if that is set.
// Otherwise the first call builds it, which takes minutes without a build cache.
func Crdcached(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("CRDCACHE_CRDCACHED_BIN"); path != "" {
		return path
	}
	s := currentSuite(t)
	return s.crdcached.build(t, s.dir, "serving/server", "./cmd/crdcached")
}

// program is a binary that is built once.
type program struct {
	once sync.Once
	path string
	err  error
}

// build builds a main package of a module into dir and returns its path.
func (p *program) build(t testing.TB, dir, module, pkg string) string {
	t.Helper()
	p.once.Do(func() {
		name := path.Base(path.Join(module, pkg))
		p.path = filepath.Join(dir, name)
		cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", p.path, pkg)
		cmd.Dir = filepath.Join(repository(), module)
		if out, err := cmd.CombinedOutput(); err != nil {
			p.err = fmt.Errorf("building %s: %w\n%s", name, err, out)
		}
	})
	if p.err != nil {
		t.Fatal(p.err)
	}
	return p.path
}
