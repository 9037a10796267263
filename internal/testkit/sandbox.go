package testkit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Sandbox is a real etcd and kube-apiserver in a process of the program sandbox, which ends with this
// process. It is safe for concurrent use.
type Sandbox struct {
	// Kubeconfig is the path of a file with the address and the users. Dir is the folder of the sandbox.
	Kubeconfig, Dir string

	mu     sync.Mutex // held during a command
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr *bytes.Buffer // valid after Wait
}

// StartSandbox runs "sandbox control" with flags and returns when the API server is ready. If ctx ends
// before, nothing is left running.
func StartSandbox(ctx context.Context, program string, flags ...string) (*Sandbox, error) {
	s := &Sandbox{cmd: exec.Command(program, append([]string{"control"}, flags...)...), stderr: &bytes.Buffer{}}
	s.cmd.Stderr = s.stderr
	var err error
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.stdout = bufio.NewReader(stdout)
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	kill := context.AfterFunc(ctx, func() { _ = s.cmd.Process.Kill() }) // its watchdog ends the servers
	line, err := s.stdout.ReadString('\n')
	if !kill() || err != nil {
		ended := s.Stop()
		if ctx.Err() != nil {
			ended = context.Cause(ctx)
		}
		return nil, fmt.Errorf("%s control ended before the server was ready: %w", program, errors.Join(ended, err))
	}
	s.Kubeconfig = strings.TrimSpace(line)
	s.Dir = filepath.Dir(s.Kubeconfig)
	return s, nil
}

// Do executes a command of "sandbox control", such as "restart apiserver", and waits for its end.
func (s *Sandbox) Do(command string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := fmt.Fprintln(s.stdin, command); err != nil {
		return fmt.Errorf("sandbox %s: %w", command, err)
	}
	line, err := s.stdout.ReadString('\n')
	if err != nil {
		return fmt.Errorf("sandbox %s: the sandbox ended: %w", command, err)
	}
	message, err := strconv.Unquote(strings.TrimSpace(line))
	if err != nil {
		return fmt.Errorf("sandbox %s: %q: %w", command, line, err)
	}
	if message != "" {
		return fmt.Errorf("sandbox %s: %s", command, message)
	}
	return nil
}

// Stop stops the sandbox and waits for its end.
func (s *Sandbox) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := errors.Join(s.stdin.Close(), s.cmd.Wait()); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(s.stderr.String()))
	}
	return nil
}
