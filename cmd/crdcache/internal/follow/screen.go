package follow

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
)

// screen is the part of stdout that the feeds of one cluster share.
type screen struct {
	*stdout
	// open is set when feeds are allowed to print.
	open bool
	// closed is set when no more output is allowed.
	closed bool
}

// stdout buffers text and writes complete lines. The clusters share it.
type stdout struct {
	out io.Writer
	// color is set if lines contain our escape sequences. Other control characters are then replaced here.
	color bool
	// broken is closed when err is set.
	broken chan struct{}
	err    error

	// lock is a mutex as a channel with one token, so that stopOutput can give up waiting for it.
	lock  chan struct{}
	text  bytes.Buffer
	wrote bool
	// tables are the tables of followed types. They continue when a type is installed again.
	tables map[tableKey]*tablePrinter
}

func newStdout(out io.Writer, color bool) *stdout {
	return &stdout{out: out, color: color, broken: make(chan struct{}), lock: make(chan struct{}, 1),
		tables: map[tableKey]*tablePrinter{}}
}

// Write buffers text. The caller must hold the lock.
func (s *stdout) Write(p []byte) (int, error) {
	if !s.color {
		return s.text.Write(p)
	}
	s.text.WriteString(replaceControl(string(p)))
	return len(p), nil
}

// replaceControl replaces terminal control characters.
func replaceControl(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return print.ReplaceControl(r)
	}, text)
}

// writeRaw buffers text with our escape sequences.
func (s *stdout) writeRaw(text string) { s.text.WriteString(text) }

func (s *stdout) withLock(f func()) {
	s.lock <- struct{}{}
	defer func() { <-s.lock }()
	f()
}

// maxBuffered is the size of the buffer at which it is written.
const maxBuffered = 1 << 16

// printIfOpen calls f, which prints to the screen, unless output has ended. The caller must hold the lock.
func (s *screen) printIfOpen(f func() error) {
	if s.err != nil || s.closed {
		return
	}
	if err := f(); err != nil {
		s.fail(err)
		return
	}
	if s.text.Len() > maxBuffered {
		s.write()
	}
}

// write writes the buffer. The caller must hold the lock.
func (s *screen) write() {
	defer s.text.Reset()
	if s.err != nil || s.closed || s.text.Len() == 0 {
		return
	}
	s.wrote = true
	var err error
	if s.color {
		err = print.WriteControl(s.out, s.text.String())
	} else {
		_, err = s.out.Write(s.text.Bytes())
	}
	if err != nil {
		s.fail(fmt.Errorf("write the output: %w", err))
	}
}

func (s *stdout) fail(err error) {
	s.err = err
	close(s.broken)
}

// endTimeout bounds the wait for a write in progress when the command ends, because the reader can be
// blocked.
const endTimeout = time.Second / 2

// stopOutput waits for a write in progress, so that the last line is complete, and then stops all output.
func (s *screen) stopOutput() {
	timer := time.NewTimer(endTimeout)
	defer timer.Stop()
	select {
	case s.lock <- struct{}{}:
		s.closed = true
		<-s.lock
	case <-timer.C:
	}
}
