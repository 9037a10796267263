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

// controlPlane is an etcd and a kube-apiserver in a sandbox process. It is not safe for concurrent use. A
// restart returns when the API server is ready again, with the same data and address.
type controlPlane struct {
	binary string
	dir    string
	config string

	command *exec.Cmd
	stdin   io.Closer
	stderr  *bytes.Buffer // valid after Wait
}

// startControlPlane runs "sandbox exec" with a command that prints the path of the kubeconfig and waits until
// its standard input ends. The input is a pipe from this process, so the sandbox always ends with it.
func startControlPlane(ctx context.Context, paths location, dir string,
	flags []string) (*controlPlane, error) {
	p := &controlPlane{binary: paths.sandbox, dir: filepath.Join(dir, "sandbox"), stderr: &bytes.Buffer{}}
	args := []string{"exec", "--dir", p.dir, "--binaries", paths.binaries}
	for _, flag := range flags {
		args = append(args, "--apiserver-arg", flag)
	}
	args = append(args, "--", "sh", "-c", `echo "$KUBECONFIG"; exec cat >/dev/null`)
	p.command = exec.Command(p.binary, args...)
	p.command.Stderr = p.stderr
	stdin, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	kill := context.AfterFunc(ctx, func() { _ = p.command.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if !kill() || err != nil {
		_ = p.stop()
		return nil, fmt.Errorf("%s exec ended before the server was ready: %s", p.binary,
			strings.TrimSpace(p.stderr.String()))
	}
	p.config = strings.TrimSpace(line)
	return p, nil
}

// kubeconfig returns the path of a file with AdminContext, the current context, and UnprivilegedContext.
func (p *controlPlane) kubeconfig() string { return p.config }

// killAPIServer kills the API server. restartAPIServer starts it again.
func (p *controlPlane) killAPIServer(ctx context.Context) error {
	return p.run(ctx, "kill", "apiserver")
}

func (p *controlPlane) restartAPIServer(ctx context.Context) error {
	return p.run(ctx, "restart", "apiserver")
}

// killEtcd kills etcd. restartEtcd starts it again.
func (p *controlPlane) killEtcd(ctx context.Context) error { return p.run(ctx, "kill", "etcd") }

func (p *controlPlane) restartEtcd(ctx context.Context) error { return p.run(ctx, "restart", "etcd") }

// etcdData returns the data folder of etcd.
func (p *controlPlane) etcdData() string { return filepath.Join(p.dir, "etcd") }

// compact discards etcd's history.
func (p *controlPlane) compact(ctx context.Context) error { return p.run(ctx, "compact") }

// apiServerPID returns the process ID of the running API server.
func (p *controlPlane) apiServerPID(ctx context.Context) (int, error) {
	out, err := exec.CommandContext(ctx, p.binary, "status", "--json", "--dir", p.dir).Output()
	if err != nil {
		return 0, fmt.Errorf("sandbox status: %w", err)
	}
	var status struct{ APIServer struct{ PID int } }
	if err := json.Unmarshal(out, &status); err != nil {
		return 0, fmt.Errorf("sandbox status: %w", err)
	}
	return status.APIServer.PID, nil
}

func (p *controlPlane) stop() error {
	if err := errors.Join(p.stdin.Close(), p.command.Wait()); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(p.stderr.String()))
	}
	return nil
}

// run sends a command to the sandbox through another process of its binary.
func (p *controlPlane) run(ctx context.Context, args ...string) error {
	args = append(args, "--dir", p.dir)
	out, err := exec.CommandContext(ctx, p.binary, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("sandbox %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
