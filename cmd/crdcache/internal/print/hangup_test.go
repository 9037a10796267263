//go:build linux || darwin

package print

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

// TestHangup verifies that a closed pipe is detected without writing.
func TestHangup(t *testing.T) {
	r, w, err := os.Pipe()
	must(t, err)
	defer w.Close()
	ctx, cancel := WithHangup(t.Context(), NewStream(w))
	defer cancel()
	if _, err := w.WriteString("a line\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ctx.Done():
		t.Fatal("got the notification before the reader closed the pipe")
	default:
	}
	r.Close()
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Minute):
	}
	if err := context.Cause(ctx); !errors.Is(err, ErrHungUp) {
		t.Fatalf("the context ended with %v after the reader closed the pipe, want ErrHungUp", err)
	}
}
