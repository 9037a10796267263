// Command project tests and releases the project:
//
//	project platforms GOOS/GOARCH...   type-checks the module in the working directory for platforms
//	project compatibility              summarizes "go test -json" for one version of Kubernetes
//	project versions                   tests the modules with several versions of Kubernetes' modules
//	project fuzz MODULE...             runs the fuzz tests of modules and adds their executions to a file
//	project release                    sets the version of the published modules
//
// compatibility, versions and fuzz write a section of a document, unless a test failed. Each command has
// -help.
//
// # Fuzzing
//
// fuzz repeats all tests until the total number of executions is reached, including earlier runs with the
// same file of results. Only the coverage of the project and of the packages that read JSON and YAML guides
// the engine. This is much faster than go test -fuzz, which also counts the coverage of client-go. The
// failing input of a test is stored below the package's testdata, so that every later run of the tests
// repeats it.
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
	"compatibility": compatibility,
	"fuzz":          fuzz,
	"platforms":     checkPlatforms,
	"release":       prepareRelease,
	"versions":      testVersions,
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
		fmt.Fprintf(os.Stderr, "unknown command %q: see the documentation of integration/project\n", name)
		os.Exit(2)
	}
	if err := command(ctx, flag.NewFlagSet(name, flag.ExitOnError), args); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
