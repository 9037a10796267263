package cli_test

import (
	"context"
	"os"
	"os/signal"
	"testing"

	"github.com/crdcache/crdcache/internal/cli"
)

// asProgram makes the test binary behave like the program, for tests of what only a process has: its real
// stderr, and signals.
const asProgram = "CRDCACHE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := cli.Main(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
