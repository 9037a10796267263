package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Program runs the command line of the process, until it ends or a signal tells it to, and returns the exit code. A
// second signal ends the process even when it cannot write.
func Program() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return Main(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr)
}
