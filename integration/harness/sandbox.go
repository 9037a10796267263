package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
)

// sandbox is a control plane run by the sandbox binary.
type sandbox struct {
	binary string
	dir    string
	config string

	command *exec.Cmd
	stdin   io.Closer
	stderr  *bytes.Buffer // only to be read after Wait
}

// startSandbox runs "sandbox exec" around a command that prints where the kubeconfig is and then waits
// until its standard input ends. That input is a pipe from this process, so the sandbox ends with it, in
// whatever way it ends.
func startSandbox(ctx context.Context, binary, dir string, apiServerArgs []string) (*sandbox, error) {
	s := &sandbox{binary: binary, dir: filepath.Join(dir, "sandbox"), stderr: &bytes.Buffer{}}
	args := []string{"exec", "--dir", s.dir}
	for _, arg := range apiServerArgs {
		args = append(args, "--apiserver-arg", arg)
	}
	args = append(args, "--", "sh", "-c", `echo "$KUBECONFIG"; exec cat >/dev/null`)
	s.command = exec.Command(binary, args...)
	s.command.Stderr = s.stderr
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
	kill := context.AfterFunc(ctx, func() { _ = s.command.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if !kill() || err != nil {
		_ = s.stop()
		return nil, fmt.Errorf("%s exec ended before the server was ready: %s", binary, strings.TrimSpace(s.stderr.String()))
	}
	s.config = strings.TrimSpace(line)
	return s, nil
}

func (s *sandbox) kubeconfig() string { return s.config }

func (s *sandbox) killAPIServer(ctx context.Context) error { return s.run(ctx, "kill", "apiserver") }

func (s *sandbox) restartAPIServer(ctx context.Context) error {
	return s.run(ctx, "restart", "apiserver")
}

func (s *sandbox) killEtcd(ctx context.Context) error { return s.run(ctx, "kill", "etcd") }

func (s *sandbox) restartEtcd(ctx context.Context) error { return s.run(ctx, "restart", "etcd") }

func (s *sandbox) etcdData() string { return filepath.Join(s.dir, "etcd") }

func (s *sandbox) compact(ctx context.Context) error { return s.run(ctx, "compact") }

func (s *sandbox) apiServerPID(ctx context.Context) (int, error) {
	out, err := exec.CommandContext(ctx, s.binary, "status", "--json", "--dir", s.dir).Output()
	if err != nil {
		return 0, fmt.Errorf("sandbox status: %w", err)
	}
	var status struct{ APIServer struct{ PID int } }
	if err := json.Unmarshal(out, &status); err != nil {
		return 0, fmt.Errorf("sandbox status: %w", err)
	}
	return status.APIServer.PID, nil
}

func (s *sandbox) stop() error {
	if err := errors.Join(s.stdin.Close(), s.command.Wait()); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(s.stderr.String()))
	}
	return nil
}

// run has the sandbox steered by another process of its binary.
func (s *sandbox) run(ctx context.Context, args ...string) error {
	args = append(args, "--dir", s.dir)
	out, err := exec.CommandContext(ctx, s.binary, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("sandbox %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
