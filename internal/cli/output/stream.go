package output

import (
	"io"
	"os"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/moby/term"
)

// Stream is an output of the program. It remembers the first error, for callers that cannot return it. If a person
// sees what is written, control characters but line breaks and tabs are replaced: objects may hold what would steer
// the terminal. It may be used by several goroutines.
type Stream struct {
	w        io.Writer
	terminal bool

	mu     sync.Mutex
	err    error
	held   []byte // the beginning of a character, whose rest is yet to come
	buffer []byte
}

// NewStream returns a stream to w.
func NewStream(w io.Writer) *Stream {
	file, ok := w.(*os.File)
	return &Stream{w: w, terminal: ok && term.IsTerminal(file.Fd())}
}

// Write implements io.Writer.
func (s *Stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	safe := p
	if s.terminal {
		safe = s.visible(p)
	}
	if err := s.write(safe); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Err is the first error of writing.
func (s *Stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// write passes p on; it is called with mu held.
func (s *Stream) write(p []byte) error {
	_, err := s.w.Write(p)
	if s.err == nil {
		s.err = err
	}
	return err
}

// visible replaces control characters and what is no character; it is called with mu held. Its result holds until
// the next call.
func (s *Stream) visible(p []byte) []byte {
	rest := append(s.held, p...)
	out := s.buffer[:0]
	for len(rest) > 0 && utf8.FullRune(rest) {
		r, size := utf8.DecodeRune(rest)
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			r = unicode.ReplacementChar
		}
		out, rest = utf8.AppendRune(out, r), rest[size:]
	}
	s.held, s.buffer = append([]byte(nil), rest...), out
	return out
}

// WriteControl writes text with control characters of our own.
func WriteControl(w io.Writer, text string) error {
	s, ok := w.(*Stream)
	if !ok {
		_, err := io.WriteString(w, text)
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write([]byte(text))
}

// IsTerminal reports whether a person sees what is written.
func IsTerminal(w io.Writer) bool {
	s, ok := w.(*Stream)
	return ok && s.terminal
}
