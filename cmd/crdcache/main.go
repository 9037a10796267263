// Command crdcache keeps and queries a live copy of Kubernetes resources.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/crdcache/crdcache/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program even when it cannot write
	code := cli.Main(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
