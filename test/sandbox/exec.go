package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"
)

func newExec() *cobra.Command {
	var o startOptions
	c := &cobra.Command{
		Use:   "exec [--dir DIR] [flags] -- COMMAND [ARG…]",
		Short: "Run a command with a sandbox of its own",
		Long: `Start a sandbox, run COMMAND with KUBECONFIG pointing to it, and stop the sandbox
when the command ends. Without --dir the sandbox uses a temporary directory and
deletes it afterwards. The command gets the directory in SANDBOX_DIR.

SIGTERM and SIGHUP are forwarded to the command. The exit code is the command's
own, 128+N if signal N ended it, 127 if it cannot be found, or 125 if the sandbox
failed.`,
		Example: `  sandbox exec --load config/crd -- kubectl get crds`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			code, err := o.exec(c.Context(), args)
			if err != nil {
				fmt.Fprintf(os.Stderr, errorPrefix+"%v\n", err)
			}
			return exitCode(code)
		},
	}
	c.Flags().SetInterspersed(false)
	o.addFlags(c.Flags())
	return c
}

// exec runs the command in a new sandbox, and returns the exit code for this program.
func (o *startOptions) exec(ctx context.Context, command []string) (int, error) {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return exitNotFound, err
	}
	cp, err := o.start(ctx)
	if err != nil {
		return exitExecFailed, err
	}
	defer cp.stop()
	cmd := exec.Command(path, command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cp.dir.kubeconfigPath(), "SANDBOX_DIR="+string(cp.dir))
	// A terminal sends SIGINT to the command, too.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return exitExecFailed, err
	}
	// The watchdog sends SIGTERM to the command if this process dies.
	pidFile := cp.dir.pidPath("command")
	defer os.Remove(pidFile)
	if err := writeFile(pidFile, []byte(strconv.Itoa(cmd.Process.Pid))); err != nil {
		_ = cmd.Process.Kill()
		return exitExecFailed, errors.Join(err, cmd.Wait())
	}
	commandEnded := make(chan error, 1)
	go func() { commandEnded <- cmd.Wait() }() // ends with the command
	for {
		select {
		case s := <-signals:
			_ = cmd.Process.Signal(s)
		case err := <-commandEnded:
			return exitCodeOf(err)
		}
	}
}

func exitCodeOf(err error) (int, error) {
	var exitErr *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case !errors.As(err, &exitErr):
		return exitExecFailed, err
	}
	if status, ok := exitErr.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitSignalBase + int(status.Signal()), nil
	}
	return exitErr.ExitCode(), nil
}
