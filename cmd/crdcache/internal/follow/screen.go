package follow

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
)

// screen is stdout, to which the feeds of all types print, one at a time. What is printed is gathered, and
// written in whole lines.
type screen struct {
	out io.Writer
	// color says that lines have escape sequences of our own, so that others are replaced here.
	color bool
	// broken is closed with err.
	broken chan struct{}
	err    error

	// turn holds one token, which whoever prints takes.
	turn chan struct{}
	text bytes.Buffer
	// open says that feeds may begin.
	open bool
	// ended says that nothing more is written.
	ended bool
	// began says that something has been printed.
	began bool
}

func newScreen(out io.Writer, color bool) *screen {
	return &screen{out: out, color: color, broken: make(chan struct{}), turn: make(chan struct{}, 1)}
}

// Write gathers text; whoever calls it has the turn.
func (s *screen) Write(p []byte) (int, error) {
	if !s.color {
		return s.text.Write(p)
	}
	s.text.WriteString(visible(string(p)))
	return len(p), nil
}

// visible replaces what would steer a terminal.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return print.Visible(r)
	}, text)
}

// paint gathers text with escape sequences of our own.
func (s *screen) paint(text string) { s.text.WriteString(text) }

// in calls f in its turn.
func (s *screen) in(f func()) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	f()
}

// maxGathered is how much text is gathered before it is written.
const maxGathered = 1 << 16

// print takes what f prints, unless nothing can be written any more; whoever calls it has the turn.
func (s *screen) print(f func() error) {
	if s.err != nil || s.ended {
		return
	}
	if err := f(); err != nil {
		s.fail(err)
		return
	}
	if s.text.Len() > maxGathered {
		s.write()
	}
}

// write writes what was gathered; whoever calls it has the turn.
func (s *screen) write() {
	defer s.text.Reset()
	if s.err != nil || s.ended || s.text.Len() == 0 {
		return
	}
	s.began = true
	var err error
	if s.color {
		err = print.WriteControl(s.out, s.text.String())
	} else {
		_, err = s.out.Write(s.text.Bytes())
	}
	if err != nil {
		s.fail(fmt.Errorf("writing the output: %w", err))
	}
}

func (s *screen) fail(err error) {
	s.err = err
	close(s.broken)
}

// grace is how long a write that is under way may take when the command ends: a reader that has stopped
// reading must not keep it from ending.
const grace = time.Second / 2

// end makes that nothing more is written once what is being written has been, so that the last line is whole.
func (s *screen) end() {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case s.turn <- struct{}{}:
		s.ended = true
		<-s.turn
	case <-timer.C:
	}
}
