package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// startOptions are the options of commands that start a sandbox.
type startOptions struct {
	dir           string // empty: a temporary directory
	load          []string
	apiServerArgs []string
	binaries      string
}

func (o *startOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.dir, "dir", "", "directory to use and to keep")
	flags.StringArrayVar(&o.load, "load", nil,
		"manifest, or directory of manifests, to apply once the server is ready; repeatable")
	flags.StringArrayVar(&o.apiServerArgs, "apiserver-arg", nil,
		"argument for kube-apiserver, like feature-gates=Name=true; repeatable")
	flags.StringVar(&o.binaries, "binaries", "",
		"folder of etcd and kube-apiserver, as build-version.sh makes; the default is the folder of this program")
}

// start starts a sandbox and loads the manifests. The caller must stop it.
func (o *startOptions) start(ctx context.Context) (*controlPlane, error) {
	manifests, err := readManifests(o.load)
	if err != nil {
		return nil, err
	}
	cp, err := startControlPlane(ctx, *o)
	if err != nil {
		return nil, err
	}
	if err := applyManifests(ctx, cp.dir.kubeconfigPath(), manifests); err != nil {
		cp.stop()
		return nil, err
	}
	return cp, nil
}

func newUp() *cobra.Command {
	var o startOptions
	var foreground bool
	c := &cobra.Command{
		Use:   "up --dir DIR",
		Short: "Start a sandbox",
		Long: `Start etcd and kube-apiserver in DIR, wait until the API server is ready, apply
what --load names, and print the path of the kubeconfig.

The command then returns, and a supervisor runs until "sandbox down". With --wait
the command stays in the foreground, and stops the sandbox after SIGINT or
SIGTERM.

The kubeconfig has two contexts: sandbox-admin (current), with all permissions,
and sandbox-unprivileged, which may only discover the API.
A directory can be used again after "sandbox down": its data is still there.`,
		Example: `  export KUBECONFIG=$(sandbox up --dir /tmp/box --load config/crd)
  kubectl get crds
  sandbox down --dir /tmp/box`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !foreground {
				return startDetached(c.Context(), o.dir)
			}
			cp, err := o.start(c.Context())
			if err != nil {
				return err
			}
			defer cp.stop()
			fmt.Println(cp.dir.kubeconfigPath())
			<-c.Context().Done()
			return nil
		},
	}
	o.addFlags(c.Flags())
	requireDir(c)
	c.Flags().BoolVar(&foreground, "wait", false,
		"stay in the foreground until interrupted, then stop the sandbox")
	return c
}

// startDetached starts this command line again with --wait in its own session. It prints the path of the
// kubeconfig when the sandbox is ready.
func startDetached(ctx context.Context, dir string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	log, err := openLog(directory(dir), "supervisor")
	if err != nil {
		return err
	}
	defer log.Close() // the supervisor has its own descriptor
	offset, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	supervisor := exec.Command(program, append(os.Args[1:], "--wait")...)
	supervisor.Stderr = log
	supervisor.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdout, err := supervisor.StdoutPipe()
	if err != nil {
		return err
	}
	if err := supervisor.Start(); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = supervisor.Process.Signal(syscall.SIGTERM) })()
	if kubeconfig, err := bufio.NewReader(stdout).ReadString('\n'); err == nil {
		fmt.Print(kubeconfig)
		return nil
	}
	waitErr := supervisor.Wait()
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	message, err := io.ReadAll(io.NewSectionReader(log, offset, 1<<20))
	if len(message) == 0 || err != nil {
		return fmt.Errorf("the supervisor ended without a message: %w", errors.Join(waitErr, err))
	}
	return errors.New(strings.TrimSpace(strings.TrimPrefix(string(message), errorPrefix)))
}

func newDown() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "down --dir DIR",
		Short: "Stop a sandbox; its data and logs stay",
		Long: `Stop the sandbox in DIR and return when it has ended. It is no error if no
sandbox is running. The directory keeps the data, the kubeconfig and the logs:
delete it when you do not need them any more.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return stopSandbox(c.Context(), directory(dir)) },
	}
	c.Flags().StringVar(&dir, "dir", "", "directory of the sandbox")
	requireDir(c)
	return c
}

// downTimeout is the time after which stopSandbox kills a supervisor.
const downTimeout = 15 * time.Second

// stopSandbox stops the sandbox in a directory, if there is one, and returns when the sandbox has ended. It
// kills a supervisor that does not react. Then the watchdog kills the components.
func stopSandbox(ctx context.Context, dir directory) error {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		isRunning, err := isLocked(dir.lockPath())
		if err != nil || !isRunning {
			return err
		}
		if pid := readPID(dir.lockPath()); pid != 0 {
			_ = syscall.Kill(pid, signal)
		}
		for deadline := time.Now().Add(downTimeout); time.Now().Before(deadline); {
			if isRunning, err := isLocked(dir.lockPath()); err != nil || !isRunning {
				return err
			}
			select {
			case <-time.After(30 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return fmt.Errorf("stop the sandbox in %s: supervisor %d still runs: kill it", dir, readPID(dir.lockPath()))
}

func newControl() *cobra.Command {
	var o startOptions
	c := &cobra.Command{
		Use:   "control",
		Short: "Start a sandbox and disturb it on request, for tests",
		Long: `Start a sandbox, print the path of the kubeconfig, and execute commands from
standard input, one per line:

  kill etcd|apiserver      SIGKILL; the port stays reserved
  restart etcd|apiserver   stop and start on the same port, until it is ready
  compact                  discard etcd's history, so that old versions expire

The result of each is a line with a quoted error, which is empty for success.
The sandbox stops at the end of standard input. Without --dir it uses a
temporary directory, and deletes it in the end.

After compact, lists at an older exact resource version and continue tokens get
410 Gone. Watches get it only after "restart apiserver", which empties the watch
cache.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cp, err := o.start(c.Context())
			if err != nil {
				return err
			}
			defer cp.stop()
			fmt.Println(cp.dir.kubeconfigPath())
			commands := make(chan string)
			go func() { // ends with standard input, or with the process
				defer close(commands)
				for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
					commands <- lines.Text()
				}
			}()
			for {
				select {
				case command, ok := <-commands:
					if !ok {
						return nil
					}
					message := ""
					if err := cp.execute(c.Context(), command); err != nil {
						message = err.Error()
					}
					fmt.Printf("%q\n", message)
				case <-c.Context().Done():
					return nil
				}
			}
		},
	}
	o.addFlags(c.Flags())
	return c
}

// execute executes a command of "sandbox control".
func (cp *controlPlane) execute(ctx context.Context, command string) error {
	switch command {
	case "kill etcd":
		cp.etcd.kill()
	case "kill apiserver":
		cp.apiServer.kill()
	case "restart etcd":
		return cp.restart(ctx, etcdName)
	case "restart apiserver":
		return cp.restart(ctx, apiServerName)
	case "compact":
		return cp.compact(ctx)
	default:
		return fmt.Errorf("unknown command %q; see sandbox control --help", command)
	}
	return nil
}

// requireDir makes --dir required.
func requireDir(c *cobra.Command) {
	if err := c.MarkFlagRequired("dir"); err != nil {
		panic(err) // the flag does not exist
	}
}
