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

// command runs the task's command. It checks a printed count, and discards all other output. A small child
// starts the command, because a process inherits the peak memory of its parent.
func command(ctx context.Context, task Task, _ func() error) (_ Outcome, err error) {
	if len(task.Serve) > 0 {
		serving, cancel := context.WithCancelCause(ctx)
		ended := make(chan error, 1)
		go func() { // ends with the server
			_, err := runCommand(ctx, task, nil, task.Serve)
			cancel(err)
			ended <- err
		}()
		defer func() {
			_, stopped := runCommand(ctx, task, nil, []string{task.Command[0], "serve", "stop"})
			err = errors.Join(err, stopped, <-ended)
		}()
		check(awaitServer(serving, task))
	}
	var out io.Writer
	var printed bytes.Buffer
	if task.Experiment == QueryCount {
		out = &printed
	}
	start := time.Now()
	cmd, err := runCommand(ctx, task, out, task.Command)
	check(err)
	wall := time.Since(start)
	if out != nil && printed.String() != fmt.Sprintln(task.Objects) {
		return Outcome{}, fmt.Errorf("%v printed %q, want %d", task.Command, &printed, task.Objects)
	}
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

// awaitServer waits until the server has the objects. ctx ends with the server.
func awaitServer(ctx context.Context, task Task) (err error) {
	var status bytes.Buffer
	for err == nil && !syncedPattern.Match(status.Bytes()) {
		err = pause(ctx, 100*time.Millisecond)
		// It fails until the server listens.
		_, _ = runCommand(ctx, task, &status, []string{task.Command[0], "serve", "status"})
	}
	return err
}
