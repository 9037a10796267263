package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	// Keeps the module in go.mod. Only its folder of definitions is needed.
	_ "github.com/cert-manager/cert-manager/pkg/apis/certmanager"

	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/test/integration/bench/internal/experiment"
)

// namespaces is the number of namespaces of the objects.
const namespaces = 50

// sandbox is a running API server with Certificates. It ends with this process and leaves nothing behind.
type sandbox struct {
	*testkit.Sandbox
	size, gates string // the size of its objects, and the feature gates of its API server
	filled      int    // number of Certificates that it was filled with
	readable    int    // number of objects that the server is known to serve
}

// checkSandbox returns an error if the program does not exist.
func checkSandbox(program string) error {
	if info, err := os.Stat(program); err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("there is no sandbox at %s: run 'make sandbox' to build it, or say where it is with -sandbox",
			program)
	}
	return nil
}

// prepareSandbox provides a sandbox with the objects of a step.
func (r *runner) prepareSandbox(ctx context.Context, step Step) error {
	if r.sandbox != nil && (r.sandbox.size != step.Size || r.sandbox.gates != step.Gates) {
		if err := r.stopSandbox(); err != nil {
			return err
		}
	}
	if r.sandbox == nil {
		if err := r.startSandbox(ctx, step); err != nil {
			return err
		}
	}
	if err := r.fill(ctx, step.Objects); err != nil {
		return err
	}
	return r.awaitReadable(ctx, step)
}

func (r *runner) startSandbox(ctx context.Context, step Step) error {
	flags := []string{"--load", r.crds}
	if step.Gates != "" {
		flags = append(flags, "--apiserver-arg", "feature-gates="+step.Gates)
	}
	started, err := testkit.StartSandbox(ctx, r.options.sandbox, flags...)
	if err != nil {
		return err
	}
	r.sandbox = &sandbox{Sandbox: started, size: step.Size, gates: step.Gates}
	client, err := newClient(r.sandbox.Kubeconfig)
	if err != nil {
		return err
	}
	var version struct{ GitVersion string }
	err = getJSON(ctx, client.Get().AbsPath("/version"), &version)
	r.result.Machine.Kubernetes = version.GitVersion
	return err
}

// fill adds Certificates until there are count. It cannot remove objects.
func (r *runner) fill(ctx context.Context, count int) error {
	s := r.sandbox
	if count < s.filled {
		return fmt.Errorf("the sandbox has %d objects already, and only %d are needed", s.filled, count)
	}
	if count == s.filled {
		return nil
	}
	out, err := exec.CommandContext(ctx, r.options.sandbox, "fill", "--dir", s.Dir, "--size", s.size,
		"--count", strconv.Itoa(count), "--namespaces", strconv.Itoa(namespaces)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("filling the sandbox: %w: %s", err, bytes.TrimSpace(out))
	}
	s.filled = count
	return nil
}

// errNotServed fails a step. Other steps can continue.
var errNotServed = errors.New("the server does not serve the objects of the sandbox")

// awaitReadable reads all objects until that succeeds. A server that was just filled may still be loading
// them, and interrupts watches.
func (r *runner) awaitReadable(ctx context.Context, step Step) error {
	if r.sandbox.readable == step.Objects {
		return nil
	}
	step = Step{Experiment: experiment.Sync, Size: step.Size, Objects: step.Objects}
	var err error
	for range 50 {
		if _, err = r.measure(ctx, step, experiment.Stream); err == nil {
			r.sandbox.readable = step.Objects
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.logf("  again: %v", err)
		select {
		case <-time.After(2 * time.Second):
		case <-ctx.Done():
		}
	}
	return fmt.Errorf("%w: %w", errNotServed, err)
}

func (r *runner) stopSandbox() error {
	if r.sandbox == nil {
		return nil
	}
	err := r.sandbox.Stop()
	r.sandbox = nil
	return err
}

// certManagerCRDs returns the folder of cert-manager's definitions in the module cache. It must be called in
// the folder of this module.
func certManagerCRDs(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/cert-manager/cert-manager").Output()
	if err != nil {
		return "", fmt.Errorf("finding the module of cert-manager (is this run in the folder of the benchmark's module?): %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "deploy", "crds"), nil
}
