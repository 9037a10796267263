// Package cli_test runs every verb of the command against a real API server, and compares dump with kubectl.
package cli_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/crdcache/crdcache/test/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// patience limits every wait.
const patience = 5 * time.Minute

// result is the result of a finished command.
type result struct {
	stdout, stderr string
	code           int
}

// newCommand prepares a program with the kubeconfig of the control plane.
func newCommand(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+harness.Kubeconfig(t), "HOME="+t.TempDir())
	return cmd
}

func run(t *testing.T, program string, args ...string) result {
	t.Helper()
	return runCommand(t, newCommand(t, program, args...))
}

func runCommand(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var failed *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// expect checks the exit code and that both outputs contain the texts. An empty text expects an empty output.
func (r result) expect(t *testing.T, code int, stdout, stderr string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d", r.code, code)
	}
	if !strings.Contains(r.stdout, stdout) || stdout == "" && r.stdout != "" {
		t.Errorf("stdout is %q, want %q in it", r.stdout, stdout)
	}
	if !strings.Contains(r.stderr, stderr) || stderr == "" && r.stderr != "" {
		t.Errorf("stderr is %q, want %q in it", r.stderr, stderr)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
