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

// configWith returns a config of one resource with these indexes.
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
	updates  chan *indexers.Config
	outcomes chan reload.Outcome
}

// watchFiles runs a watcher that accepts each config until the test ends.
func watchFiles(t *testing.T, files ...string) *fixture {
	t.Helper()
	updates := make(chan *indexers.Config, 100)
	apply := func(_ context.Context, config *indexers.Config) error { updates <- config; return nil }
	f := runWatcher(t, reload.Options{Files: files, Apply: apply})
	f.updates = updates
	return f
}

// awaitOutcome waits for a matching outcome. It skips other outcomes, because a file may be read while it is
// written.
func (f *fixture) awaitOutcome(condition string, matches func(reload.Outcome) bool) reload.Outcome {
	f.Helper()
	timeout := time.After(5 * time.Minute)
	for {
		select {
		case o := <-f.outcomes:
			if matches(o) {
				return o
			}
		case <-timeout:
			f.Fatalf("timed out waiting until %s", condition)
		}
	}
}

// expectIndexes waits until a config with these indexes is in effect.
func (f *fixture) expectIndexes(names ...string) {
	f.Helper()
	f.awaitOutcome(fmt.Sprint("a config has the indexes ", names), func(o reload.Outcome) bool {
		return o.Err == nil && indexesOf(o.Config) == strings.Join(names, " ")
	})
	if got := indexesOf(f.watcher.Config()); got != strings.Join(names, " ") {
		f.Errorf("indexes of Config = %s, want %v", got, names)
	}
}

// indexesOf returns the names of a config's indexes, separated by spaces.
func indexesOf(c *indexers.Config) string {
	var names []string
	for _, i := range c.Resources[0].Indexes {
		names = append(names, i.Name)
	}
	return strings.Join(names, " ")
}

// TestConfigMapIsSwapped verifies that the files of a ConfigMap mount are read after the kubelet has swapped
// the link ..data, which points to the folder with the current version.
func TestConfigMapIsSwapped(t *testing.T) {
	dir := t.TempDir()
	publish := func(n int, name string) {
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
	publish(0, "a")
	file := filepath.Join(dir, "indexes.yaml")
	if err := os.Symlink(filepath.Join("..data", "indexes.yaml"), file); err != nil {
		t.Fatal(err)
	}
	s := watchFiles(t, file)
	for n, name := range []string{"b", "c", "d"} {
		publish(n+1, name)
		s.expectIndexes(name)
		if err := os.RemoveAll(filepath.Join(dir, fmt.Sprintf("..v%d", n))); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBadConfigChangesNothing verifies that an invalid or missing file changes nothing and that the reason is
// reported.
func TestBadConfigChangesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "indexes.yaml")
	write(t, file, configWith("a"))
	s := watchFiles(t, file)
	write(t, file, strings.Replace(configWith("a"), "path:", "pathes:", 1))
	o := s.awaitOutcome("the misspelled field is reported",
		func(o reload.Outcome) bool { return strings.Contains(o.String(), "pathes") })
	var ce *indexers.ConfigError
	if !errors.As(o.Err, &ce) || ce.Diagnostics[0].Line != 9 || indexesOf(o.Config) != "a" ||
		!strings.Contains(o.String(), `did you mean "paths"?`) {
		t.Errorf("outcome = %v, want an error in line 9 with a suggestion, and the config a", o)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	s.awaitOutcome("the missing file is reported", func(o reload.Outcome) bool {
		return o.Err != nil && strings.Contains(o.String(), "E017")
	})
	write(t, file, configWith("a", "b"))
	s.expectIndexes("a", "b")
	if got := indexesOf(<-s.updates); got != "a b" {
		t.Errorf("indexes of the first applied config = %s, want a b", got)
	}
}

// TestRejectedConfig verifies that a config that Apply rejects does not take effect, and that each Reload
// tries it again.
func TestRejectedConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "indexes.yaml")
	write(t, file, configWith("a"))
	errRejected := errors.New("rejected")
	applications := 0
	w, err := reload.New(reload.Options{
		Files: []string{file},
		Apply: func(_ context.Context, c *indexers.Config) error {
			applications++
			if indexesOf(c) == "b" {
				return errRejected
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, configWith("b"))
	for range 2 {
		if o := w.Reload(t.Context()); !errors.Is(o.Err, errRejected) || indexesOf(w.Config()) != "a" {
			t.Errorf("Reload = %v, want %v and the config a", o, errRejected)
		}
	}
	write(t, file, "# the same\n"+configWith("a"))
	if o := w.Reload(t.Context()); o.Err != nil || applications != 3 {
		t.Errorf("Reload of an equal config = %v with %d calls of Apply, want no error and 3", o, applications)
	}
}

// TestHugeFile verifies that a file larger than the memory is rejected without being read completely.
func TestHugeFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "huge.yaml")
	write(t, file, "")
	if err := os.Truncate(file, 1<<40); err != nil { // a sparse file, which uses no disk space
		t.Fatal(err)
	}
	var ce *indexers.ConfigError
	if _, err := reload.New(reload.Options{Files: []string{file},
		Apply: func(context.Context, *indexers.Config) error { return nil }}); !errors.As(err, &ce) ||
		!strings.Contains(err.Error(), "larger than 4 MiB") {
		t.Errorf("New with a huge file: got the error %v, want one about the limit of 4 MiB", err)
	}
}
