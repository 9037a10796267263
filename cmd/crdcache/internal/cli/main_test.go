package cli_test

import (
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"weak"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
)

// programEnv is a variable that makes the test binary act as the program. Then tests can send signals and see
// stderr.
const programEnv = "CRDCACHE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if url := os.Getenv(relistEnv); url != "" {
		os.Exit(relistAndReportMemory(url))
	}
	if os.Getenv(programEnv) == "" {
		debug.SetGCPercent(500) // the tests allocate much and retain little
		testscript.Main(m, map[string]func(){"crdcache": crdcacheMain, "kubectl-crdcache": crdcacheMain})
	}
	crdcacheMain()
}

// TestFlagsAreCollected verifies that the flags of a command do not outlive it. crdcache mcp runs many.
func TestFlagsAreCollected(t *testing.T) {
	dump, _, err := cli.Command().Find([]string{"dump"})
	must(t, err)
	output := weak.Make(dump.Flag("output"))
	for range 10 {
		if runtime.GC(); output.Value() == nil {
			return
		}
	}
	t.Error("a flag is still referenced")
}

func crdcacheMain() { os.Exit(cli.Program()) }

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
