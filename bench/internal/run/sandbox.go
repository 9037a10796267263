package run

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	// Keeps the module in go.mod. Only its folder of definitions is needed.
	_ "github.com/cert-manager/cert-manager/pkg/apis/certmanager"
)

// sandbox is a running sandbox in a temporary folder. It is not safe for concurrent use.
type sandbox struct {
	binary, dir, kubeconfig string
	size                    string
	filled                  int

	command *exec.Cmd
	stdin   io.Closer
	stderr  *bytes.Buffer // valid after Wait
}

// namespaces is the number of namespaces of the objects.
const namespaces = 50

// The type of Fill's objects.
const (
	// certificatesType is its name in commands.
	certificatesType = "certificates.cert-manager.io"
	// certificatesPath is its API path.
	certificatesPath = "/apis/cert-manager.io/v1/certificates"
)

// startSandbox starts a sandbox and applies the definitions in a folder. size is the size of its objects,
// "small" or "large". gates are the feature gates of its API server. Stop ends it. It also ends with this
// process and leaves nothing behind.
func startSandbox(ctx context.Context, binary, crds, size, gates string) (*sandbox, error) {
	if err := checkSandbox(binary); err != nil {
		return nil, err
	}
	s := &sandbox{binary: binary, size: size, stderr: &bytes.Buffer{}}
	arguments := []string{"exec", "--load", crds}
	if gates != "" {
		arguments = append(arguments, "--apiserver-arg", "feature-gates="+gates)
	}
	s.command = exec.Command(binary, append(arguments, "--", "sh", "-c",
		`echo "$SANDBOX_DIR"; echo "$KUBECONFIG"; exec cat >/dev/null`)...)
	s.command.Stderr = s.stderr
	// Protect the sandbox from Ctrl-C. It ends with its standard input.
	s.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := s.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	s.stdin = stdin
	stdout, err := s.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	interrupt := context.AfterFunc(ctx, func() { _ = s.command.Process.Signal(syscall.SIGTERM) })
	lines := bufio.NewScanner(stdout)
	for _, value := range []*string{&s.dir, &s.kubeconfig} {
		if lines.Scan() {
			*value = strings.TrimSpace(lines.Text())
		}
	}
	if !interrupt() || s.kubeconfig == "" {
		_ = s.Stop()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("%s exec ended before the server was ready: %s", binary,
			strings.TrimSpace(s.stderr.String()))
	}
	return s, nil
}

// checkSandbox returns an error if the program does not exist.
func checkSandbox(binary string) error {
	if info, err := os.Stat(binary); err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("there is no sandbox at %s: run 'make sandbox' to build it, or say where it is with -sandbox",
			binary)
	}
	return nil
}

// Kubeconfig returns the path of a file with the address and the administrator.
func (s *sandbox) Kubeconfig() string { return s.kubeconfig }

// Fill adds Certificates until there are count. It cannot remove objects.
func (s *sandbox) Fill(ctx context.Context, count int) error {
	if count < s.filled {
		return fmt.Errorf("the sandbox has %d objects already, and %d are wanted", s.filled, count)
	}
	if count == s.filled {
		return nil
	}
	command := exec.CommandContext(ctx, s.binary, "fill", "--dir", s.dir,
		"--count", strconv.Itoa(count), "--namespaces", strconv.Itoa(namespaces), "--size", s.size)
	if out, err := command.CombinedOutput(); err != nil {
		return errors.Join(context.Cause(ctx), fmt.Errorf("filling the sandbox: %w: %s", err,
			bytes.TrimSpace(out)))
	}
	s.filled = count
	return nil
}

// Stop stops the sandbox and waits for its end.
func (s *sandbox) Stop() error {
	if err := errors.Join(s.stdin.Close(), s.command.Wait()); err != nil {
		return fmt.Errorf("stopping the sandbox: %w: %s", err, strings.TrimSpace(s.stderr.String()))
	}
	return nil
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
