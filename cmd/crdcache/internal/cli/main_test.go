package cli_test

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
)

// asProgram makes the test binary behave like the program, for tests of what only a process has: its real
// stderr, and signals.
const asProgram = "CRDCACHE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "" {
		testscript.Main(m, map[string]func(){"crdcache": program, "kubectl-crdcache": program})
	}
	program()
}

// program is what cmd/crdcache does.
func program() { os.Exit(cli.Program()) }
