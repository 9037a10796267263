// Command project tests and releases the project:
//
//	project platforms GOOS/GOARCH...   type-checks the module in the working directory for platforms
//	project release                    sets the version of the published modules
//
// Each command has -help.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

var commands = map[string]func(ctx context.Context, flags *flag.FlagSet, args []string) error{
	"platforms": checkPlatforms,
	"release":   prepareRelease,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	name, args := "", os.Args[1:]
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	command, ok := commands[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "unknown command %q: see the documentation of test/integration/internal/project\n", name)
		os.Exit(2)
	}
	if err := command(ctx, flag.NewFlagSet(name, flag.ExitOnError), args); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
