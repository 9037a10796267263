package dump_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/integration/harness"
)

// Exit codes of the command.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotSynced   = 3
	exitForbidden   = 4
	exitInterrupted = 130
)

// patience limits every wait.
const patience = 90 * time.Second

// result is the result of a finished command.
type result struct {
	stdout, stderr string
	code           int
}

// command prepares "crdcache dump" with the kubeconfig of the control plane.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, harness.Crdcache(t), append([]string{"dump"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+harness.Kubeconfig(t), "HOME="+t.TempDir())
	return cmd
}

// dump runs a command to its end.
func dump(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := command(t, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var failed *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// mustDump expects success and an empty stderr, and returns stdout.
func mustDump(t *testing.T, args ...string) string {
	t.Helper()
	r := dump(t, args...)
	if r.code != exitOK || r.stderr != "" {
		t.Fatalf("dump %s: exit code %d, stderr:\n%s", strings.Join(args, " "), r.code, r.stderr)
	}
	return r.stdout
}

// expectError expects an exit code, an empty stdout, and one line with the text on stderr.
func (r result) expectError(t *testing.T, code int, text string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d", r.code, code)
	}
	if r.stdout != "" {
		t.Errorf("stdout is not empty:\n%s", r.stdout)
	}
	if !strings.HasPrefix(r.stderr, "error: ") || strings.Count(r.stderr, "\n") != 1 ||
		!strings.HasSuffix(r.stderr, "\n") {
		t.Errorf("stderr is not one line with an error:\n%s", r.stderr)
	}
	if !strings.Contains(r.stderr, text) {
		t.Errorf("stderr does not say %q:\n%s", text, r.stderr)
	}
}

func expectSame(t *testing.T, what, want, got string) {
	t.Helper()
	if want == got {
		return
	}
	t.Errorf("%s (-want +got):\n%s", what, cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
}

// installCertManager installs cert-manager's definitions and creates certificates in two namespaces, which it
// returns.
func installCertManager(t *testing.T) []string {
	t.Helper()
	harness.InstallCRDs(t, harness.Read(t, harness.CertManagerCRDs(t))...)
	namespaces := []string{harness.Namespace(t), harness.Namespace(t)}
	for _, ns := range namespaces {
		for n := range 3 {
			harness.Apply(t, certificate(ns, n))
		}
	}
	return namespaces
}

// certificate returns a Certificate. Its status has the condition of a printer column only for some n.
func certificate(namespace string, n int) *unstructured.Unstructured {
	conditions := []any{}
	if n > 0 {
		conditions = append(conditions, map[string]any{
			"type": "Ready", "status": []string{"False", "True"}[n%2], "reason": "Tested",
			"message": "a message of\ntwo lines", "lastTransitionTime": "2026-01-02T03:04:05Z",
		})
	}
	name := fmt.Sprintf("web-%d", n)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
		"metadata": map[string]any{"namespace": namespace, "name": name,
			"labels": map[string]any{"n": fmt.Sprint(n)}},
		"spec": map[string]any{
			"secretName": name + "-tls", "dnsNames": []any{name + ".example.org"},
			"issuerRef": map[string]any{"name": "local"},
		},
		"status": map[string]any{"conditions": conditions},
	}}
}
