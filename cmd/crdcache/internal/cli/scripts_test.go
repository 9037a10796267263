package cli_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var rewriteScripts = flag.Bool("rewrite-scripts", false,
	"write the output of the commands in scripts/ into the expected output")

// TestScripts runs scripts/*.txtar, each in a directory with links to the CRDs, objects and index configs of
// testdata.
func TestScripts(t *testing.T) {
	data, err := filepath.Abs("../../../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "scripts",
		UpdateScripts:       *rewriteScripts,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			for _, name := range []string{"crds", "objects", "indexes"} {
				if err := os.Symlink(filepath.Join(data, name),
					filepath.Join(env.WorkDir, name)); err != nil {
					return err
				}
			}
			env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "no-kubeconfig"))
			env.Setenv("LC_ALL", "C.UTF-8")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": checkExitCode},
	})
}

// checkExitCode implements "exits CODE PROGRAM ARGS...", which checks an exit code.
func checkExitCode(ts *testscript.TestScript, not bool, args []string) {
	if not || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARGUMENT...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	err = ts.Exec(args[1], args[2:]...)
	var exited *exec.ExitError
	switch {
	case errors.As(err, &exited):
		code = exited.ExitCode()
	case err != nil:
		ts.Fatalf("running the command: %v", err)
	}
	if code != want {
		fmt.Fprint(ts.Stderr(), ts.ReadFile("stderr"))
		ts.Fatalf("the exit code is %d, want %d", code, want)
	}
}
