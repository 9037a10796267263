package reload_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/reload"
	"github.com/crdcache/crdcache/internal/testkit"
)

// runWatcher runs a watcher until the test ends.
func runWatcher(t *testing.T, options reload.Options) *fixture {
	t.Helper()
	f := &fixture{T: t, outcomes: make(chan reload.Outcome, 1000)}
	options.PollInterval, options.Retry = time.Millisecond, time.Millisecond
	options.Report = func(o reload.Outcome) { f.outcomes <- o }
	var err error
	if f.watcher, err = reload.New(options); err != nil {
		t.Fatal(err)
	}
	testkit.RunUntilEnd(t, f.watcher.Run)
	return f
}

// TestRejectedConfigIsRetried verifies that a config that Apply rejects temporarily is applied
// later without another write, and that repeated failures are reported once.
func TestRejectedConfigIsRetried(t *testing.T) {
	file := filepath.Join(t.TempDir(), "indexes.yaml")
	write(t, file, configWith("a"))
	var applications atomic.Int64
	s := runWatcher(t, reload.Options{
		Files: []string{file},
		Apply: func(context.Context, *indexers.Config) error {
			if applications.Add(1) < 3 {
				return errors.New("it cannot be applied")
			}
			return nil
		},
	})
	write(t, file, configWith("b"))
	s.expectIndexes("b")
	if len(s.outcomes) > 0 || applications.Load() != 3 {
		t.Errorf("%d outcomes after success and %d calls of Apply, want 0 and 3", len(s.outcomes),
			applications.Load())
	}
}

// TestForbiddenFolder verifies that a temporarily unreadable folder does not end the watcher.
func TestForbiddenFolder(t *testing.T) {
	if os.Geteuid() == 0 {
		forbiddenFolderAsRoot(t)
		return
	}
	dir := filepath.Join(t.TempDir(), "config", "sub")
	above := filepath.Dir(dir)
	forbiddenFolder(t, dir, func() { chmod(t, above, 0) }, func() { chmod(t, above, 0o700) })
}

func chmod(t *testing.T, dir string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
}

// forbiddenFolderAsRoot replaces the folder by a file, which even root cannot read as a folder.
func forbiddenFolderAsRoot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "config", "sub")
	above := filepath.Dir(dir)
	forbiddenFolder(t, dir, func() {
		if err := os.Rename(above, above+".away"); err != nil {
			t.Fatal(err)
		}
		write(t, above, "")
	}, func() {
		if err := os.Remove(above); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(above+".away", above); err != nil {
			t.Fatal(err)
		}
	})
}

// forbiddenFolder verifies that a watcher reads files again after forbid and allow.
func forbiddenFolder(t *testing.T, dir string, forbid, allow func()) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "indexes.yaml")
	write(t, file, configWith("a"))
	s := runWatcher(t, reload.Options{Files: []string{file},
		Apply: func(context.Context, *indexers.Config) error { return nil }})
	forbid()
	s.awaitOutcome("the file is unreadable", func(o reload.Outcome) bool { return o.Err != nil })
	allow()
	write(t, file, configWith("b"))
	s.expectIndexes("b")
}

// TestRepeatedFailureIsReportedOnce verifies that six reloads with three equal failures make two reports.
func TestRepeatedFailureIsReportedOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "indexes.yaml")
	write(t, file, configWith("a"))
	checks, reports := 0, 0
	w, err := reload.New(reload.Options{
		Files: []string{file},
		Apply: func(_ context.Context, c *indexers.Config) error {
			if indexesOf(c) == "b" {
				if checks++; checks < 4 {
					return errors.New("the server does not answer")
				}
			}
			return nil
		},
		Report: func(reload.Outcome) { reports++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, configWith("b"))
	for range 6 {
		w.Reload(t.Context())
	}
	if indexesOf(w.Config()) != "b" || reports != 2 {
		t.Errorf("indexes = %s after %d reports, want b after 2", indexesOf(w.Config()), reports)
	}
}
