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
	// open allows feeds to print.
	open bool
	// closed forbids all output.
	closed bool
}

// stdout buffers text and writes complete lines. All clusters share it.
type stdout struct {
	out io.Writer
	// color is set if lines contain colors. Write then replaces control characters of objects.
	color bool
	// failed is closed when err is set.
	failed chan struct{}
	err    error

	// lock is a mutex that stopOutput can await with a timeout.
	lock       chan struct{}
	text       bytes.Buffer
	hasWritten bool
	// tables has the table of each type. A table continues when its type is installed again.
	tables map[tableKey]*tablePrinter
}

func newStdout(out io.Writer, color bool) *stdout {
	return &stdout{out: out, color: color, failed: make(chan struct{}), lock: make(chan struct{}, 1),
		tables: map[tableKey]*tablePrinter{}}
}

// Write buffers text. The caller must hold the lock.
func (s *stdout) Write(p []byte) (int, error) {
	if !s.color {
		return s.text.Write(p)
	}
	s.text.WriteString(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return print.ReplaceControl(r)
	}, string(p)))
	return len(p), nil
}

func (s *stdout) withLock(f func()) {
	s.lock <- struct{}{}
	defer func() { <-s.lock }()
	f()
}

const maxBufferBytes = 1 << 16

// printIfOpen calls f, which prints to the screen, unless the output has ended. The caller must hold the
// lock.
func (s *screen) printIfOpen(f func() error) {
	if s.err != nil || s.closed {
		return
	}
	if err := f(); err != nil {
		s.fail(err)
		return
	}
	if s.text.Len() > maxBufferBytes {
		s.writeBuffer()
	}
}

// writeBuffer writes the buffer. The caller must hold the lock.
func (s *screen) writeBuffer() {
	defer s.text.Reset()
	if s.err != nil || s.closed || s.text.Len() == 0 {
		return
	}
	s.hasWritten = true
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
	close(s.failed)
}

// stopTimeout bounds the wait of stopOutput. A write blocks if the reader of the output does not read.
const stopTimeout = time.Second / 2

// stopOutput waits for a write in progress, so that the last line is complete, and then stops all output.
func (s *screen) stopOutput() {
	select {
	case s.lock <- struct{}{}:
		s.closed = true
		<-s.lock
	case <-time.After(stopTimeout):
	}
}
