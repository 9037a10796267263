package print

import (
	"io"
	"os"
	"runtime"
	"sync"
	"unicode/utf8"

	"github.com/moby/term"
)

// Stream is an output of the program. It remembers the first error, for callers that cannot return it. If a
// person sees what is written, what would steer the terminal is replaced, but for line breaks and tabs:
// objects may hold anything. It may be used by several goroutines.
type Stream struct {
	w        io.Writer
	terminal bool

	mu     sync.Mutex
	err    error
	held   []byte // the beginning of a character, whose rest is yet to come
	buffer []byte
	status bool // a line is shown that goes away with the next text
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
	if s.status {
		s.status = false
		_ = s.write([]byte(clearLine)) // what comes now fails the same way
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

// visible replaces control characters and what is no character; it is called with mu held. Its result holds
// until the next call.
func (s *Stream) visible(p []byte) []byte {
	rest := append(s.held, p...)
	out := s.buffer[:0]
	for len(rest) > 0 && utf8.FullRune(rest) {
		r, size := utf8.DecodeRune(rest)
		if r != '\n' && r != '\t' {
			r = Visible(r)
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

// clearLine goes back to the beginning of the line and empties it.
const clearLine = "\r\x1b[K"

// WriteStatus shows one line, cut to the width of the terminal, which the next one replaces, and any other
// text: so that a warning does not come to stand behind it. An empty text takes it away. Where control
// characters mean nothing it does nothing.
func WriteStatus(w io.Writer, text string) {
	s, ok := w.(*Stream)
	if !ok || !Controllable(s) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case text != "":
		// Of the last column terminals have different ideas.
		_ = s.write([]byte(clearLine + Cut(Printable(text), s.width()-1)))
	case s.status:
		_ = s.write([]byte(clearLine))
	}
	s.status = text != ""
}

// defaultWidth is that of a terminal that does not tell.
const defaultWidth = 80

// width is how many columns the terminal has at this moment.
func (s *Stream) width() int {
	if file, ok := s.w.(*os.File); ok {
		if size, err := term.GetWinsize(file.Fd()); err == nil && size.Width > 0 {
			return int(size.Width)
		}
	}
	return defaultWidth
}

// Controllable reports whether w is a terminal that takes control sequences.
func Controllable(w io.Writer) bool {
	kind := os.Getenv("TERM")
	return IsTerminal(w) && kind != "dumb" && (kind != "" || runtime.GOOS == "windows")
}

// IsTerminal reports whether a person sees what is written.
func IsTerminal(w io.Writer) bool {
	s, ok := w.(*Stream)
	return ok && s.terminal
}

// IsPipe reports whether another program reads what is written, while it is written.
func IsPipe(w io.Writer) bool {
	file := File(w)
	if file == nil {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
}

// File is the file that w writes to; nil where it is none.
func File(w io.Writer) *os.File {
	s, ok := w.(*Stream)
	if !ok {
		return nil
	}
	file, _ := s.w.(*os.File)
	return file
}
