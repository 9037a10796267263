//go:build linux || darwin

package print

import (
	"os"
	"testing"
	"time"
)

// TestHangup verifies that a closed pipe is detected without writing.
func TestHangup(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	quit := make(chan struct{})
	defer close(quit)
	hungUp := NotifyHangup(w, quit)
	if _, err := w.WriteString("a line\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-hungUp:
		t.Fatal("got the notification before the reader closed the pipe")
	default:
	}
	r.Close()
	select {
	case <-hungUp:
	case <-time.After(5 * time.Minute):
		t.Fatal("timed out waiting for the notification after the reader closed the pipe")
	}
}
