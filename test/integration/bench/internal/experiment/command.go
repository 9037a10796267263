package experiment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

// command runs the task's command and discards its output. A small child starts it, because a process
// inherits the peak memory of its parent.
func command(ctx context.Context, task Task, _ func() error) (_ Outcome, err error) {
	if len(task.Serve) > 0 {
		program := task.Command[0]
		if _, err := runCommand(ctx, task, nil, task.Serve); err != nil {
			return Outcome{}, err
		}
		defer func() {
			_, ended := runCommand(context.WithoutCancel(ctx), task, nil, []string{program, "serve", "stop"})
			err = errors.Join(err, ended)
		}()
		check(awaitServer(ctx, task, program))
	}
	start := time.Now()
	cmd, err := runCommand(ctx, task, nil, task.Command)
	check(err)
	wall := time.Since(start)
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return Outcome{}, fmt.Errorf("%v: the system does not report CPU and memory", task.Command)
	}
	return Outcome{Metrics: map[string]float64{
		CPU:     (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(),
		Wall:    wall.Seconds(),
		PeakRSS: float64(usage.Maxrss << 10), // in KiB on Linux
	}}, nil
}

// runCommand runs a program with arguments. It ignores the user's settings, and keeps caches and sockets in
// the sandbox's folder.
func runCommand(ctx context.Context, task Task, out io.Writer, args []string) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	folder := filepath.Dir(task.Kubeconfig)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+task.Kubeconfig, "KUBERC=off",
		"KUBECACHEDIR="+filepath.Join(folder, "kubectl-cache"), "XDG_RUNTIME_DIR="+folder)
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%v: %w: %s", args, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return cmd, nil
}

// syncedPattern matches the state and the number of objects of a type in a server's status.
var syncedPattern = regexp.MustCompile(`Synced +[1-9]`)

// awaitServer waits until the server has the objects.
func awaitServer(ctx context.Context, task Task, program string) error {
	for {
		var status bytes.Buffer
		if _, err := runCommand(ctx, task, &status, []string{program, "serve", "status"}); err != nil {
			return err
		}
		if syncedPattern.Match(status.Bytes()) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
