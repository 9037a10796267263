package reload_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/reload"
)

// configWith returns a config with one resource with these indexes.
func configWith(names ...string) string {
	text := "apiVersion: crdcache.dev/v1beta1\nkind: IndexConfig\nmetadata: {name: test}\nspec:\n  resources:\n  - name: w\n    match: {group: example.com, kind: Widget}\n    indexes:\n"
	for _, name := range names {
		text += "    - {name: " + name + ", path: .spec." + name + "}\n"
	}
	return text
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fixture is a running watcher with its outcomes.
type fixture struct {
	*testing.T
	watcher  *reload.Watcher
	updates  chan reload.Update
	outcomes chan reload.Outcome
}

// watch runs a watcher until the test ends.
func watch(t *testing.T, files ...string) *fixture {
	t.Helper()
	s := &fixture{T: t, updates: make(chan reload.Update, 100), outcomes: make(chan reload.Outcome, 100)}
	var err error
	s.watcher, err = reload.New(t.Context(), reload.Options{
		Files: files, QuietPeriod: time.Millisecond, PollInterval: -1,
		Apply: func(_ context.Context, u reload.Update) error {
			s.updates <- u
			return nil
		},
		Report: func(o reload.Outcome) { s.outcomes <- o },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.watcher.Run(ctx) }() // ended by cancel
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// until waits for a matching outcome. A file may be read more than once while it is written.
func (s *fixture) until(what string, fits func(reload.Outcome) bool) reload.Outcome {
	s.Helper()
	patience := time.After(time.Minute)
	for {
		select {
		case o := <-s.outcomes:
			if fits(o) {
				return o
			}
		case <-patience:
			s.Fatalf("%s: nothing happened", what)
		}
	}
}

// has waits until a config with these indexes is in effect.
func (s *fixture) has(names ...string) {
	s.Helper()
	s.until(fmt.Sprint(names), func(o reload.Outcome) bool {
		return o.Err == nil && indexesOf(o.Config) == strings.Join(names, " ")
	})
	if got := indexesOf(s.watcher.Config()); got != strings.Join(names, " ") {
		s.Errorf("in force: %s, want %v", got, names)
	}
}

func indexesOf(c *indexers.Config) string {
	var names []string
	for _, i := range c.Resources[0].Indexes {
		names = append(names, i.Name)
	}
	return strings.Join(names, " ")
}

func TestFileIsWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "indexes.yaml")
	write(t, file, configWith("a"))
	s := watch(t, file)
	write(t, file, configWith("a", "b"))
	s.has("a", "b")
	u := <-s.updates
	if len(u.Changes) != 1 || u.Changes[0].Name != "w" || !u.Changes[0].InPlace() ||
		indexesOf(u.Old) != "a" || indexesOf(u.New) != "a b" {
		t.Errorf("got %+v", u)
	}
}

// Editors write another file and rename it.
func TestFileIsReplaced(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "indexes.yaml")
	write(t, file, configWith("a"))
	s := watch(t, file)
	for _, name := range []string{"b", "c"} {
		write(t, filepath.Join(dir, ".new"), configWith(name))
		if err := os.Rename(filepath.Join(dir, ".new"), file); err != nil {
			t.Fatal(err)
		}
		s.has(name)
	}
}

// A ConfigMap mount has a link ..data to a folder, which is swapped, and links to the files in it.
func TestConfigMapIsSwapped(t *testing.T) {
	dir := t.TempDir()
	version := func(n int, name string) {
		folder := fmt.Sprintf("..v%d", n)
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, folder, "indexes.yaml"), configWith(name))
		if err := os.Symlink(folder, filepath.Join(dir, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	version(0, "a")
	file := filepath.Join(dir, "indexes.yaml")
	if err := os.Symlink(filepath.Join("..data", "indexes.yaml"), file); err != nil {
		t.Fatal(err)
	}
	s := watch(t, file)
	for n, name := range []string{"b", "c", "d"} {
		version(n+1, name)
		s.has(name)
		if err := os.RemoveAll(filepath.Join(dir, fmt.Sprintf("..v%d", n))); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLinkTargetIsWritten verifies that the folder behind a link is watched.
func TestLinkTargetIsWritten(t *testing.T) {
	here, there := t.TempDir(), t.TempDir()
	target, link := filepath.Join(there, "real.yaml"), filepath.Join(here, "indexes.yaml")
	write(t, target, configWith("a"))
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	s := watch(t, link)
	write(t, target, configWith("b"))
	s.has("b")
}

// An invalid or missing file, and a failing Check or Apply, change nothing and report the reason.
func TestBadConfigChangesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "indexes.yaml")
	write(t, file, configWith("a"))
	s := watch(t, file)
	write(t, file, strings.Replace(configWith("a"), "path:", "pathes:", 1))
	o := s.until("an error", func(o reload.Outcome) bool { return strings.Contains(o.String(), "pathes") })
	var ce *indexers.ConfigError
	if !errors.As(o.Err, &ce) || ce.Diagnostics[0].Line != 9 || indexesOf(o.Config) != "a" ||
		!strings.Contains(o.String(), `did you mean "paths"?`) {
		t.Errorf("got %v", o)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	s.until("a missing file", func(o reload.Outcome) bool {
		return o.Err != nil && strings.Contains(o.String(), "E017")
	})
	write(t, file, configWith("a", "b"))
	s.has("a", "b")
	if got := indexesOf((<-s.updates).New); got != "a b" {
		t.Errorf("applied: %s", got)
	}
}

// TestRejectedConfig verifies that a config that Check or Apply rejects is not in effect, and is retried on
// each Reload.
func TestRejectedConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "indexes.yaml")
	write(t, file, configWith("a"))
	refusal := errors.New("refused")
	var checks, applications int
	w, err := reload.New(t.Context(), reload.Options{
		Files: []string{file},
		Check: func(_ context.Context, c *indexers.Config) error {
			checks++
			if indexesOf(c) == "b" {
				return refusal
			}
			return nil
		},
		Apply: func(context.Context, reload.Update) error {
			applications++
			return refusal
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b", "c"} {
		write(t, file, configWith(name))
		if o := w.Reload(t.Context()); !errors.Is(o.Err, refusal) || indexesOf(w.Config()) != "a" {
			t.Errorf("%s: %v", name, o)
		}
		if o := w.Reload(t.Context()); !errors.Is(o.Err, refusal) {
			t.Errorf("the same file again: %v", o)
		}
	}
	write(t, file, "# the same\n"+configWith("a"))
	if o := w.Reload(t.Context()); o.Err != nil || len(o.Changes) > 0 ||
		!strings.Contains(o.String(), "without changes") {
		t.Errorf("got %v", o)
	}
	if checks != 6 || applications != 2 {
		t.Errorf("%d checks, %d applications", checks, applications)
	}
}

func TestNewErrors(t *testing.T) {
	if _, err := reload.New(t.Context(), reload.Options{}); err == nil {
		t.Error("no files are accepted")
	}
	var ce *indexers.ConfigError
	if _, err := reload.New(t.Context(),
		reload.Options{Files: []string{filepath.Join(t.TempDir(), "none")}}); !errors.As(err, &ce) ||
		ce.Diagnostics[0].Code != "E017" {
		t.Errorf("got %v", err)
	}
}

// TestHugeFile verifies that a file that is larger than memory is rejected and not read completely.
func TestHugeFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "huge.yaml")
	write(t, file, "")
	if err := os.Truncate(file, 1<<40); err != nil { // a hole, which takes no room on the disk
		t.Fatal(err)
	}
	var ce *indexers.ConfigError
	if _, err := reload.New(t.Context(), reload.Options{Files: []string{file}}); !errors.As(err, &ce) ||
		!strings.Contains(err.Error(), "larger than 4 MiB") {
		t.Errorf("got %v", err)
	}
}

// TestPoll verifies that a file written through a hard link in another folder sends no event.
func TestPoll(t *testing.T) {
	file, other := filepath.Join(t.TempDir(), "indexes.yaml"), filepath.Join(t.TempDir(), "other.yaml")
	write(t, file, configWith("a"))
	if err := os.Link(file, other); err != nil {
		t.Fatal(err)
	}
	outcomes := make(chan reload.Outcome, 100)
	w, err := reload.New(t.Context(), reload.Options{Files: []string{file},
		PollInterval: 10 * time.Millisecond,
		Report:       func(o reload.Outcome) { outcomes <- o }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }() // ended by cancel
	s := &fixture{T: t, watcher: w, outcomes: outcomes}
	for _, name := range []string{"b", "c"} {
		write(t, other, configWith(name))
		s.has(name)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
