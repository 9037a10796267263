package experiment

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// command runs the task's command with its output thrown away. It happens in a child because a process counts
// the peak memory of the one that started it as its own, and a child is small.
func command(ctx context.Context, task Task, _ func() error) (Outcome, error) {
	cmd := exec.CommandContext(ctx, task.Command[0], task.Command[1:]...)
	// What it remembers of the server goes where the sandbox is, and with it; the user's settings don't
	// count.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+task.Kubeconfig, "KUBERC=off",
		"KUBECACHEDIR="+filepath.Join(filepath.Dir(task.Kubeconfig), "kubectl-cache"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return Outcome{}, fmt.Errorf("%v: %w: %s", task.Command, err, bytes.TrimSpace(stderr.Bytes()))
	}
	wall := time.Since(start)
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return Outcome{}, fmt.Errorf("%v: the system does not tell what it used", task.Command)
	}
	return Outcome{Metrics: map[string]float64{
		CPU:     (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(),
		Wall:    wall.Seconds(),
		PeakRSS: float64(usage.Maxrss << 10), // in KiB on Linux
	}}, nil
}
