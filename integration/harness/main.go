package harness

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/crdcache/crdcache/internal/leakcheck"
)

// patience is how long anything may take before a test gives up: far more than anything needs, so that a
// busy machine fails no test.
const patience = 90 * time.Second

// Option configures the control plane of a package.
type Option func(*settings)

type settings struct {
	apiServerArgs []string
}

// WithAPIServerArgs passes flags to kube-apiserver, each as "name=value" with or without dashes in front.
func WithAPIServerArgs(args ...string) Option {
	return func(s *settings) { s.apiServerArgs = append(s.apiServerArgs, args...) }
}

// Main runs the tests of a package and exits. It fails a run that leaves goroutines of the library or of a
// reflector behind. Call it from TestMain and from nowhere else.
func Main(m *testing.M, options ...Option) { os.Exit(run(m, options)) }

// run exists so that deferred calls happen before the process exits.
func run(m *testing.M, options []Option) int {
	dir, err := os.MkdirTemp("", "crdcache-integration-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	shared = &suite{dir: dir}
	for _, o := range options {
		o(&shared.settings)
	}
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
	dir      string
	settings settings

	plane struct {
		once sync.Once
		controlPlane
		unavailable error // there are no binaries
		err         error // there are, and they did not start
	}
	cli struct {
		once sync.Once
		path string
		err  error
	}
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
func plane(t testing.TB) controlPlane {
	t.Helper()
	s := current(t)
	p := &s.plane
	p.once.Do(func() {
		// A control plane that has not come up is a nil pointer, which is not a nil interface.
		if started, unavailable, err := s.start(); unavailable != nil || err != nil {
			p.unavailable, p.err = unavailable, err
		} else {
			p.controlPlane = started
		}
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

func (s *suite) start() (p controlPlane, unavailable, err error) {
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
	if where.sandbox != "" {
		p, err = startSandbox(ctx, where.sandbox, s.dir, s.settings.apiServerArgs)
	} else {
		p, err = startEnvtest(ctx, where.assets, s.dir, s.settings.apiServerArgs)
	}
	return p, nil, err
}

func (s *suite) stop() error {
	if s.plane.controlPlane == nil {
		return nil
	}
	return s.plane.controlPlane.stop()
}
