// Command sandbox runs a real etcd and a real kube-apiserver on loopback, for tests, demonstrations and
// benchmarks. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// errorPrefix begins every error on stderr.
const errorPrefix = "sandbox: "

const (
	exitError = 1
	// exitExecFailed is the exit code if exec itself fails.
	exitExecFailed = 125
	// exitNotFound and exitSignalBase follow the shell's convention.
	exitNotFound   = 127
	exitSignalBase = 128
)

// exitCode is an error with only an exit code, for errors that were already printed.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func main() { os.Exit(run(os.Args[1:])) }

// run runs the program and returns its exit code.
func run(args []string) int {
	// SIGINT and SIGTERM end the context. Then a sandbox that waits stops.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var code exitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	default:
		fmt.Fprintf(os.Stderr, errorPrefix+"%v\n", err)
		return exitError
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "sandbox",
		Short: "Run a real etcd and kube-apiserver on loopback",
		Long: `sandbox runs a real etcd and a real kube-apiserver on loopback, in one directory,
without a cluster, a container or root. There is no scheduler and no kubelet,
and only the controllers inside the API server run.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newUp(), newDown(), newExec(), newFill(), newControl())
	return root
}
