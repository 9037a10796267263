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
	"golang.org/x/term"

	"github.com/crdcache/crdcache/sandbox/internal/controlplane"
)

type execOptions struct {
	startOptions
	dir string
}

func newExec() *cobra.Command {
	var o execOptions
	c := &cobra.Command{
		Use:   "exec [--dir DIR] [flags] -- COMMAND [ARG…]",
		Short: "Run a command with a sandbox of its own",
		Long: `Start a sandbox, run COMMAND with KUBECONFIG pointing to it, and stop the sandbox
when the command ends. Without --dir everything happens in a temporary directory
that is deleted afterwards. SANDBOX_DIR tells the command which directory it is.

Signals are passed on to the command. The exit code is the command's own, 128+N
if signal N ended it, 127 if it cannot be found, 125 if the sandbox failed.`,
		Example: `  sandbox exec --load config/crd -- kubectl get crds`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.run(c.Context(), args)
		},
	}
	c.Flags().SetInterspersed(false)
	c.Flags().StringVar(&o.dir, "dir", "", "directory to use and to keep, instead of a temporary one")
	o.addFlags(c.Flags())
	return c
}

func (o *execOptions) run(ctx context.Context, command []string) error {
	code, err := o.runCommand(ctx, command)
	if err != nil {
		fmt.Fprintf(os.Stderr, "sandbox: %v\n", err)
	}
	return exitCode(code)
}

// runCommand runs the command in a new sandbox, and returns the exit code for this program.
func (o *execOptions) runCommand(ctx context.Context, command []string) (int, error) {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return exitNotFound, err
	}
	manifests, err := o.readManifests()
	if err != nil {
		return exitExecFailed, err
	}
	cp, err := o.start(ctx, manifests)
	if err != nil {
		return exitExecFailed, err
	}
	defer cp.Stop()
	return runWithKubeconfig(cp, path, command)
}

func (o *execOptions) start(ctx context.Context, manifests []manifest) (*controlplane.ControlPlane, error) {
	o.config.Dir = o.dir
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "crdcache-sandbox-")
		if err != nil {
			return nil, err
		}
		o.config.Dir, o.config.Ephemeral = dir, true
	}
	cp, err := controlplane.Start(ctx, o.config)
	if err != nil {
		return nil, err
	}
	if err := applyManifests(ctx, cp.Layout().Kubeconfig(), manifests); err != nil {
		cp.Stop()
		return nil, err
	}
	return cp, nil
}

// runWithKubeconfig runs the command to its end and returns its exit code.
func runWithKubeconfig(cp *controlplane.ControlPlane, path string, command []string) (int, error) {
	cmd := exec.Command(path)
	cmd.Args = command
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(),
		"KUBECONFIG="+cp.Layout().Kubeconfig(),
		"SANDBOX_DIR="+cp.Layout().Dir)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return exitExecFailed, err
	}
	// The watchdog sends SIGTERM to the command if this process dies.
	if err := os.WriteFile(cp.Layout().CommandPID(), []byte(strconv.Itoa(cmd.Process.Pid)),
		0o600); err != nil {
		_ = cmd.Process.Kill()
		return exitExecFailed, errors.Join(err, cmd.Wait())
	}
	defer os.Remove(cp.Layout().CommandPID())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the command
	for {
		select {
		case s := <-signals:
			if !fromTerminal(s) {
				_ = cmd.Process.Signal(s)
			}
		case <-cp.StopRequested():
			_ = cmd.Process.Signal(syscall.SIGTERM)
			return commandExit(<-ended)
		case err := <-ended:
			return commandExit(err)
		}
	}
}

// fromTerminal guesses whether the terminal sent the signal to the whole process group. In that case,
// forwarding it would deliver it twice.
func fromTerminal(s os.Signal) bool {
	return (s == syscall.SIGINT || s == syscall.SIGQUIT) && term.IsTerminal(int(os.Stdin.Fd()))
}

func commandExit(err error) (int, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case !errors.As(err, &exit):
		return exitExecFailed, err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitSignalBase + int(status.Signal()), nil
	}
	return exit.ExitCode(), nil
}
