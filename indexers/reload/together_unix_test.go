//go:build unix

package reload_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/crdcache/crdcache/indexers/reload"
)

// A folder that is swapped between the first file and the second gives a config of two versions, which nobody wrote: the
// files are read again. The second file is a pipe, so that the swap comes when it has been opened, after the first was read.
func TestFilesAreReadTogether(t *testing.T) {
	dir := t.TempDir()
	first, pipe := filepath.Join(dir, "first.yaml"), filepath.Join(dir, "second.yaml")
	swap := func(name string) {
		write(t, first+".new", configWith(name))
		if err := os.Rename(first+".new", first); err != nil {
			t.Error(err)
		}
	}
	second := strings.NewReplacer("name: test", "name: second", "name: w", "name: other").Replace(configWith("x"))
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	// feed gives what the pipe holds to each who reads it, after the swaps for the first ones.
	feed := func(swaps ...string) (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { // ended by stop
			defer close(done)
			for {
				w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits for a reader
				if err != nil {
					t.Error(err)
					return
				}
				if ctx.Err() != nil {
					w.Close()
					return
				}
				if len(swaps) > 0 {
					swap(swaps[0])
					swaps = swaps[1:]
				}
				_, err = w.WriteString(second)
				if err := w.Close(); err != nil {
					t.Error(err)
				}
				if err != nil {
					t.Error(err)
				}
			}
		}()
		return func() {
			cancel()
			if r, err := os.Open(pipe); err == nil { // which lets the writer go on
				r.Close()
			}
			<-done
		}
	}
	swap("a")
	stop := feed()
	var applied []string
	w, err := reload.New(t.Context(), reload.Options{Files: []string{first, pipe}, Apply: func(_ context.Context, u reload.Update) error {
		applied = append(applied, indexesOf(u.New))
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	stop()
	swap("b")
	stop = feed("c")
	defer stop()
	if o := w.Reload(t.Context()); o.Err != nil || indexesOf(o.Config) != "c" || strings.Join(applied, " ") != "c" {
		t.Errorf("%v: applied %v, in force %s", o, applied, indexesOf(o.Config))
	}
}
