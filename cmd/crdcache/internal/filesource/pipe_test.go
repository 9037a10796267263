//go:build unix

package filesource

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/crdcache/crdcache/internal/manifest"
)

// TestSilentPipe checks that reading a pipe or standard input without a writer ends with the context.
func TestSilentPipe(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	must(t, syscall.Mkfifo(fifo, 0o600))
	silent, writer := io.Pipe()
	defer writer.Close()
	for name, options := range map[string]Options{"fifo": {Paths: []string{fifo}},
		"stdin": {Paths: []string{manifest.Stdin}, In: silent}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { // ended by cancel
				_, err := Open(ctx, options)
				ended <- err
			}()
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("Open() = %v, want context.Canceled", err)
			}
		})
	}
	// Releases the reader of the pipe.
	if file, err := os.OpenFile(fifo, os.O_RDWR, 0); err != nil {
		t.Error(err)
	} else {
		defer file.Close()
	}
}
