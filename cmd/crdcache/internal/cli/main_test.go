package cli_test

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
)

// asProgram makes the test binary act as the program, to test stderr and signals of a process.
const asProgram = "CRDCACHE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if url := os.Getenv(asFilled); url != "" {
		os.Exit(readFilledTypes(url))
	}
	if os.Getenv(asProgram) == "" {
		testscript.Main(m, map[string]func(){"crdcache": crdcacheMain, "kubectl-crdcache": crdcacheMain})
	}
	crdcacheMain()
}

func crdcacheMain() { os.Exit(cli.Program()) }
