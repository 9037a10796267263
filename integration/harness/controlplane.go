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

// controlPlane is an etcd and a kube-apiserver, run by the sandbox binary. Its methods are called one at a
// time. A restart returns when the API server is ready, with the same data at the same address.
type controlPlane struct {
	binary string
	dir    string
	config string

	command *exec.Cmd
	stdin   io.Closer
	stderr  *bytes.Buffer // only to be read after Wait
}

// startControlPlane runs "sandbox exec" around a command that prints where the kubeconfig is and then waits
// until its standard input ends. That input is a pipe from this process, so the sandbox ends with it, in
// whatever way it ends.
func startControlPlane(ctx context.Context, where location, dir string,
	flags []string) (*controlPlane, error) {
	p := &controlPlane{binary: where.sandbox, dir: filepath.Join(dir, "sandbox"), stderr: &bytes.Buffer{}}
	args := []string{"exec", "--dir", p.dir, "--binaries", where.binaries}
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

// kubeconfig is a file with the contexts AdminContext (the current one) and UnprivilegedContext.
func (p *controlPlane) kubeconfig() string { return p.config }

// killAPIServer ends the API server at once; it stays away until restartAPIServer.
func (p *controlPlane) killAPIServer(ctx context.Context) error {
	return p.run(ctx, "kill", "apiserver")
}

func (p *controlPlane) restartAPIServer(ctx context.Context) error {
	return p.run(ctx, "restart", "apiserver")
}

// killEtcd ends etcd at once; it stays away until restartEtcd.
func (p *controlPlane) killEtcd(ctx context.Context) error { return p.run(ctx, "kill", "etcd") }

func (p *controlPlane) restartEtcd(ctx context.Context) error { return p.run(ctx, "restart", "etcd") }

// etcdData is the folder with the data of etcd.
func (p *controlPlane) etcdData() string { return filepath.Join(p.dir, "etcd") }

// compact discards etcd's history.
func (p *controlPlane) compact(ctx context.Context) error { return p.run(ctx, "compact") }

// apiServerPID is the process of the API server, which runs.
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

// run has the sandbox steered by another process of its binary.
func (p *controlPlane) run(ctx context.Context, args ...string) error {
	args = append(args, "--dir", p.dir)
	out, err := exec.CommandContext(ctx, p.binary, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("sandbox %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
