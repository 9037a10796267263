package print

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// Stream is stdout or stderr. It keeps the first error, because some callers cannot return it. On a terminal
// it replaces control characters except line breaks and tabs. It is safe for concurrent use.
type Stream struct {
	w          io.Writer
	isTerminal bool

	mu          sync.Mutex
	err         error
	partialRune []byte // a character whose remaining bytes are not written yet
	buffer      []byte
	statusShown bool // a status line is shown
}

func NewStream(w io.Writer) *Stream {
	file, ok := w.(*os.File)
	return &Stream{w: w, isTerminal: ok && term.IsTerminal(int(file.Fd()))}
}

func (s *Stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	safe := p
	if s.isTerminal {
		safe = s.replaceControlLocked(p)
	}
	if s.statusShown {
		s.statusShown = false
		_ = s.writeLocked([]byte(clearLine)) // the next write fails with the same error
	}
	if err := s.writeLocked(safe); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Err returns the first write error.
func (s *Stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *Stream) writeLocked(p []byte) error {
	_, err := s.w.Write(p)
	s.err = cmp.Or(s.err, err)
	return err
}

// replaceControlLocked replaces control characters and invalid UTF-8. The result is valid until the next
// call.
func (s *Stream) replaceControlLocked(p []byte) []byte {
	rest := append(s.partialRune, p...)
	out := s.buffer[:0]
	for len(rest) > 0 && utf8.FullRune(rest) {
		r, size := utf8.DecodeRune(rest)
		if r != '\n' && r != '\t' {
			r = ReplaceControl(r)
		}
		out, rest = utf8.AppendRune(out, r), rest[size:]
	}
	s.partialRune, s.buffer = append([]byte(nil), rest...), out
	return out
}

// WriteControl writes text without replacing control sequences.
func WriteControl(w io.Writer, text string) error {
	s, ok := w.(*Stream)
	if !ok {
		_, err := io.WriteString(w, text)
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writeLocked([]byte(text))
}

const clearLine = "\r\x1b[K"

// WriteStatus shows one line, cut to the width of the terminal. The next status or any other text replaces
// it, and an empty text removes it. It does nothing without a terminal with control sequences.
func WriteStatus(w io.Writer, text string) {
	s, ok := w.(*Stream)
	if !ok || !HasControlSequences(s) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case text != "":
		// Terminals differ in their treatment of the last column.
		_ = s.writeLocked([]byte(clearLine + Truncate(Printable(text), s.width()-1)))
	case s.statusShown:
		_ = s.writeLocked([]byte(clearLine))
	}
	s.statusShown = text != ""
}

const defaultWidth = 80

// width returns the current width of the terminal in columns.
func (s *Stream) width() int {
	if file, ok := s.w.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return defaultWidth
}

// HasControlSequences reports whether w is a terminal that supports control sequences.
func HasControlSequences(w io.Writer) bool {
	terminalType := os.Getenv("TERM")
	return IsTerminal(w) && terminalType != "dumb" && (terminalType != "" || runtime.GOOS == "windows")
}

func IsTerminal(w io.Writer) bool {
	s, ok := w.(*Stream)
	return ok && s.isTerminal
}

func FileOf(w io.Writer) *os.File {
	s, ok := w.(*Stream)
	if !ok {
		return nil
	}
	file, _ := s.w.(*os.File)
	return file
}

// OutputErr returns the first write error of w, if it is a Stream.
func OutputErr(w io.Writer) error {
	if s, ok := w.(*Stream); ok {
		return s.Err()
	}
	return nil
}

// ErrHungUp is the cause of a context that ends because the reader closed the output.
var ErrHungUp = errors.New("the reader closed the output")

// WriteHungUp writes to a closed pipe. Where SIGPIPE exists, the signal then ends the process silently.
func WriteHungUp(w io.Writer) error {
	if _, err := io.WriteString(w, "\n"); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// hangupPause is the time after which WithHangup notices the end of its context.
const hangupPause = 200 * time.Millisecond

// WithHangup returns a context that also ends, with the cause ErrHungUp, when the reader closes the output.
func WithHangup(ctx context.Context, w io.Writer) (context.Context, context.CancelFunc) {
	readCtx, cancel := context.WithCancelCause(ctx)
	if file := FileOf(w); file != nil {
		go func() { // ended by the context
			for ok := true; ok && readCtx.Err() == nil; {
				var hungUp bool
				if hungUp, ok = awaitHangup(file, hangupPause); hungUp {
					cancel(ErrHungUp)
				}
			}
		}()
	}
	return readCtx, func() { cancel(nil) }
}
