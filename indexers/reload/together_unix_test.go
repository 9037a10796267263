//go:build unix

package reload_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/crdcache/crdcache/indexers/reload"
)

// TestFilesAreReadTogether verifies that all files are read again if one of them was replaced between the
// reads. The second file is a named pipe, so that the first is replaced exactly between the reads.
func TestFilesAreReadTogether(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first.yaml"), filepath.Join(dir, "second.yaml")
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
	}
	replace := func(name string) { must(os.Rename(name+".new", name)) }
	replaceFirst := func(name string) {
		write(t, first+".new", configWith(name))
		replace(first)
	}
	pipes := 0
	newPipe := func() (pipe string) {
		pipe = filepath.Join(dir, fmt.Sprintf("pipe-%d", pipes))
		pipes++
		must(syscall.Mkfifo(pipe, 0o600), os.Symlink(pipe, second+".new"))
		replace(second)
		return pipe
	}
	text := strings.NewReplacer("name: test", "name: second", "name: w",
		"name: other").Replace(configWith("x"))
	// writePipes writes text to each reader of the second file. Before its first writes, it replaces the
	// first file: one config of swaps for each write.
	writePipes := func(swaps ...string) (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		pipe := newPipe()
		go func() { // ended by stop
			defer close(done)
			for {
				w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits for a reader
				if err != nil {
					t.Error(err)
					return
				}
				if ctx.Err() != nil {
					must(w.Close())
					return
				}
				if len(swaps) > 0 {
					replaceFirst(swaps[0])
					swaps = swaps[1:]
				}
				pipe = newPipe()
				_, err = w.WriteString(text)
				must(err, w.Close())
			}
		}()
		return func() {
			cancel()
			r, err := os.Open(second) // unblocks the writer
			must(err)
			<-done
			must(r.Close())
		}
	}
	replaceFirst("a")
	stop := writePipes()
	var applied []string
	w, err := reload.New(t.Context(), reload.Options{Files: []string{first, second},
		Apply: func(_ context.Context, u reload.Update) error {
			applied = append(applied, indexesOf(u.New))
			return nil
		}})
	stop()
	if err != nil {
		t.Fatal(err)
	}
	replaceFirst("b")
	stop = writePipes("c")
	o := w.Reload(t.Context())
	stop()
	if o.Err != nil || indexesOf(o.Config) != "c" || strings.Join(applied, " ") != "c" {
		t.Errorf("Reload = %v: applied %v, indexes %s; want only the replaced config c", o, applied,
			indexesOf(o.Config))
	}
}
