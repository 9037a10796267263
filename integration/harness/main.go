package harness

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crdcache/crdcache/internal/testkit/leakcheck"
)

// patience is how long anything may take before a test gives up: far more than anything needs, so that a
// busy machine fails no test.
const patience = 90 * time.Second

// Main runs the tests of a package and exits. It fails a run that leaves goroutines of the library or of a
// reflector behind. What has to be there before the control plane starts is prepared in a folder that goes
// with the run. Call Main from TestMain and from nowhere else.
func Main(m *testing.M, prepare ...func(folder string) error) { os.Exit(run(m, prepare)) }

// run exists so that deferred calls happen before the process exits.
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
	shared = &suite{dir: dir}
	code := leakcheck.Main(m, "crdcache/", "tools/cache.")
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the control plane:", err)
		return max(code, 1)
	}
	return code
}

// shared is what the tests of this process have in common; Main makes it.
var shared *suite

// suite is made once per test process.
type suite struct {
	dir string

	plane struct {
		once sync.Once
		*controlPlane
		unavailable error // there are no binaries
		err         error // there are, and they did not start
	}
	server struct {
		once sync.Once
		server
		err error
	}
	cli, crdcached program
}

// program is a binary that is built once.
type program struct {
	once sync.Once
	path string
	err  error
}

// current returns the suite.
func current(t testing.TB) *suite {
	t.Helper()
	if shared == nil {
		t.Fatal("call harness.Main from TestMain")
	}
	return shared
}

// plane returns the running control plane, which the first call starts. Without binaries it skips or fails
// the test.
func plane(t testing.TB) *controlPlane {
	t.Helper()
	s := current(t)
	p := &s.plane
	p.once.Do(func() {
		p.controlPlane, p.unavailable, p.err = start(s.dir)
	})
	switch {
	case p.unavailable != nil:
		if mustHave(os.Getenv) {
			t.Fatal(p.unavailable)
		}
		t.Skip(p.unavailable)
	case p.err != nil:
		t.Fatalf("starting the control plane: %v", p.err)
	}
	return p.controlPlane
}

// start starts a control plane with its files in a folder.
func start(dir string) (p *controlPlane, unavailable, err error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, nil, err
	}
	where, err := locate(os.Getenv, isProgram, root)
	if err != nil {
		return nil, err, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	p, err = startControlPlane(ctx, where, dir, strings.Fields(os.Getenv(envAPIServerArgs)))
	return p, nil, err
}

func (s *suite) stop() error {
	if s.plane.controlPlane == nil {
		return nil
	}
	return s.plane.controlPlane.stop()
}
