package cli_test

import (
	"os"
	"testing"

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
		testscript.Main(m, map[string]func(){"crdcache": crdcacheMain, "kubectl-crdcache": crdcacheMain})
	}
	crdcacheMain()
}

func crdcacheMain() { os.Exit(cli.Program()) }
