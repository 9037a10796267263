package print

import (
	"bytes"
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
