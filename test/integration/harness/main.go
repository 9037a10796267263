package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crdcache/crdcache/internal/testkit"
)

// waitLimit limits every wait. It is long, so that no test fails on a busy machine.
const waitLimit = 5 * time.Minute

// Main runs the tests of a package and exits. It fails if the tests leave goroutines of the library or of a
// reflector behind. The prepare functions run before the control plane starts, with a folder that is removed
// at the end. Call it only from TestMain.
func Main(m *testing.M, prepare ...func(folder string) error) { os.Exit(run(m, prepare)) }

// run is a separate function so that deferred calls run before the process exits.
func run(m *testing.M, prepare []func(folder string) error) int {
	dir, err := os.MkdirTemp("", "crdcache-integration-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	for _, prepare := range prepare {
		if err := prepare(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	sharedSuite = &suite{dir: dir}
	code := testkit.Main(m, "crdcache/", "tools/cache.")
	if err := sharedSuite.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the control plane:", err)
		return max(code, 1)
	}
	return code
}

// sharedSuite is the state that all tests of this process use. Main creates it.
var sharedSuite *suite

type suite struct {
	dir string

	controlPlane struct {
		once sync.Once
		*testkit.Sandbox
		unavailable error // set if there are no binaries
		err         error // set if the start failed
	}
	server struct {
		once sync.Once
		server
		err error
	}
	cli, crdcached program
}

func currentSuite(t testing.TB) *suite {
	t.Helper()
	if sharedSuite == nil {
		t.Fatal("call harness.Main from TestMain")
	}
	return sharedSuite
}

// requireControlPlane returns the running control plane. The first call starts it. Without binaries it skips
// or fails the test.
func requireControlPlane(t testing.TB) *testkit.Sandbox {
	t.Helper()
	s := currentSuite(t)
	p := &s.controlPlane
	p.once.Do(func() {
		p.Sandbox, p.unavailable, p.err = startControlPlane(s.dir)
	})
	switch {
	case p.unavailable != nil:
		if os.Getenv(envRequire) == "1" {
			t.Fatal(p.unavailable)
		}
		t.Skip(p.unavailable)
	case p.err != nil:
		t.Fatalf("starting the control plane: %v", p.err)
	}
	return p.Sandbox
}

// startControlPlane starts a control plane that stores its files in dir. unavailable is set if there are no
// binaries.
func startControlPlane(dir string) (p *testkit.Sandbox, unavailable, err error) {
	program, flags, unavailable := locateSandbox(os.Getenv)
	if unavailable != nil {
		return nil, unavailable, nil
	}
	flags = append(flags, "--dir", filepath.Join(dir, "sandbox"))
	for _, flag := range strings.Fields(os.Getenv(envAPIServerArgs)) {
		flags = append(flags, "--apiserver-arg", flag)
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	p, err = testkit.StartSandbox(ctx, program, flags...)
	return p, nil, err
}

func (s *suite) stop() error {
	if s.controlPlane.Sandbox == nil {
		return nil
	}
	return s.controlPlane.Sandbox.Stop()
}
