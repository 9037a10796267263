package follow

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
)

// blockingWriter is a writer that sends its data and blocks until unblock is closed.
type blockingWriter struct {
	writing chan string
	unblock chan struct{}
}

func (s blockingWriter) Write(p []byte) (int, error) {
	s.writing <- string(p)
	<-s.unblock
	return len(p), nil
}

// TestScreenEnds verifies that stopOutput waits for the current line, and nothing is printed after it.
func TestScreenEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := blockingWriter{make(chan string, 2), make(chan struct{})}
		s := &screen{stdout: newStdout(out, false)}
		line := func() {
			s.withLock(func() {
				s.printIfOpen(func() error { _, err := io.WriteString(s, "a line\n"); return err })
				s.writeBuffer()
			})
		}
		go line() // ends with the write
		<-out.writing
		ended := make(chan struct{})
		go func() { s.stopOutput(); close(ended) }() // ends with the write
		synctest.Wait()
		select {
		case <-ended:
			t.Fatal("stopOutput returned in the middle of a line")
		default:
		}
		close(out.unblock)
		<-ended
		line()
		if len(out.writing) > 0 {
			t.Errorf("%q was written after stopOutput returned", <-out.writing)
		}
	})
}

// TestScreenInColor verifies that control characters of objects are replaced, and the command's own colors
// kept.
func TestScreenInColor(t *testing.T) {
	var out strings.Builder
	s := &screen{stdout: newStdout(&out, true)}
	s.printIfOpen(func() error {
		s.writeRaw("\x1b[32m")
		_, err := io.WriteString(s, "a\x1b[31m\n")
		return err
	})
	s.writeBuffer()
	if got := out.String(); strings.Count(got, "\x1b") != 1 || !strings.HasPrefix(got, "\x1b[32ma") ||
		!strings.HasSuffix(got, "[31m\n") {
		t.Errorf("wrote %q, want only the command's own color", got)
	}
}
