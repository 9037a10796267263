package print

import (
	"bytes"
	"errors"
	"testing"
)

// TestStreamOnTerminal verifies that control characters are replaced, however the text is split.
func TestStreamOnTerminal(t *testing.T) {
	const hostile = "a\x1b[2J\tb\u009b31mé→█\x07\xff\r\x7fc\n"
	const want = "a\ufffd[2J\tb\ufffd31mé→█\ufffd\ufffd\ufffd\ufffdc\n"
	for size := 1; size <= len(hostile); size++ {
		var out bytes.Buffer
		s := &Stream{w: &out, isTerminal: true}
		for rest := []byte(hostile); len(rest) > 0; rest = rest[min(size, len(rest)):] {
			piece := rest[:min(size, len(rest))]
			if n, err := s.Write(piece); n != len(piece) || err != nil {
				t.Fatalf("Write() = %d, %v, want the full length", n, err)
			}
		}
		if out.String() != want {
			t.Errorf("in pieces of %d: %q, want %q", size, out.String(), want)
		}
	}
}

// TestStreamToFile verifies that text and the command's own control sequences are written unchanged.
func TestStreamToFile(t *testing.T) {
	var out bytes.Buffer
	file := NewStream(&out)
	screen := &Stream{w: &out, isTerminal: true}
	if _, err := file.Write([]byte("\x1b\xff")); err != nil || WriteControl(screen, "\x1b[31m") != nil ||
		WriteControl(&out, "\r") != nil {
		t.Fatal(err)
	}
	if out.String() != "\x1b\xff\x1b[31m\r" {
		t.Errorf("wrote %q, want unchanged text", out.String())
	}
	if IsTerminal(file) || !IsTerminal(screen) || IsTerminal(&out) {
		t.Error("IsTerminal() is not true for the terminal only")
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func TestStreamKeepsError(t *testing.T) {
	broken := errors.New("no space")
	s := NewStream(brokenWriter{broken})
	if _, err := s.Write([]byte("a")); !errors.Is(err, broken) || !errors.Is(s.Err(), broken) {
		t.Errorf("Write() = %v, Err() = %v, want the writer's error", err, s.Err())
	}
}
