package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// program writes a shell script that acts as a sandbox: exec runs the command after the dashes with its own
// folder, and fill records its arguments.
func program(t *testing.T, ready string) (path, notes string) {
	t.Helper()
	dir := t.TempDir()
	path, notes = filepath.Join(dir, "sandbox"), filepath.Join(dir, "notes")
	script := `#!/bin/sh
case "$1" in
exec)
	echo "$@" >>` + notes + `
	` + ready + `
	while [ "$1" != -- ]; do shift; done; shift
	SANDBOX_DIR=` + dir + ` KUBECONFIG=` + dir + `/kubeconfig "$@"
	echo stopped >>` + notes + ` ;;
fill)
	echo "$@" >>` + notes + `
	case "$*" in *--count\ 13*) echo "bad luck" >&2; exit 3;; esac ;;
esac
`
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path, notes
}

func TestSandbox(t *testing.T) {
	path, notes := program(t, "")
	b, err := startSandbox(t.Context(), path, "crds", "large", "A=true")
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(filepath.Dir(path), "kubeconfig"); b.Kubeconfig() != want {
		t.Errorf("the kubeconfig is %s, want %s", b.Kubeconfig(), want)
	}
	for _, count := range []int{10, 10, 20} {
		if err := b.Fill(t.Context(), count); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Fill(t.Context(), 15); err == nil {
		t.Error("there can be fewer objects than before")
	}
	if err := b.Fill(t.Context(), 131); err == nil || !strings.Contains(err.Error(), "bad luck") {
		t.Errorf("the error is %v, want the sandbox's error", err)
	}
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	noted, err := os.ReadFile(notes)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(noted)), "\n")
	if len(lines) != 5 || lines[4] != "stopped" {
		t.Fatalf("the sandbox did %q, want a start, three fills and an end", lines)
	}
	if !strings.Contains(lines[0], "--load crds --apiserver-arg feature-gates=A=true -- ") {
		t.Errorf("exec got %q, want the definitions and the gate", lines[0])
	}
	for i, want := range []string{"--count 10 ", "--count 20 ", "--count 131 "} {
		if !strings.Contains(lines[i+1], want) || !strings.Contains(lines[i+1], "--size large") {
			t.Errorf("fill got %q, want %q and the size", lines[i+1], want)
		}
	}
}

func TestStartSandboxFailures(t *testing.T) {
	if _, err := startSandbox(t.Context(), filepath.Join(t.TempDir(), "none"), "crds", "small",
		""); err == nil || !strings.Contains(err.Error(), "make sandbox") {
		t.Errorf("the error is %v, want it to say how to build the sandbox", err)
	}
	broken, _ := program(t, "echo no port >&2; exit 125")
	if _, err := startSandbox(t.Context(), broken, "crds", "small", ""); err == nil ||
		!strings.Contains(err.Error(), "no port") {
		t.Errorf("the error is %v, want the sandbox's error", err)
	}
}

func TestStartSandboxInterrupted(t *testing.T) {
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(interrupted)
	slow, _ := program(t, "exec sleep 600")
	if _, err := startSandbox(ctx, slow, "crds", "small", ""); !errors.Is(err, interrupted) {
		t.Errorf("the error is %v, want %v", err, interrupted)
	}
}
