package watch

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/crdcache/crdcache/indexers/query"
)

// screen is stdout, to which the feeds of all types write, one at a time.
type screen struct {
	out    io.Writer
	broken chan struct{} // closed with err
	err    error
	mu     sync.Mutex
}

func newScreen(out io.Writer) *screen { return &screen{out: out, broken: make(chan struct{})} }

// printLocked prints an event unless nothing can be written any more.
func (s *screen) printLocked(p printer, e query.Event) {
	if s.err != nil {
		return
	}
	if err := p.print(e); err != nil {
		s.err = fmt.Errorf("writing the output: %w", err)
		close(s.broken)
	}
}

// feed brings the events of one type to the screen. What is there in the beginning comes in no order; it is held
// back until all of it has come, and printed in that of the API server.
type feed struct {
	screen      *screen
	printer     printer
	changesOnly bool

	// Both are kept under the lock of the screen.
	begun bool
	held  []query.Event
}

// handle takes an event.
func (f *feed) handle(e query.Event) {
	f.screen.mu.Lock()
	defer f.screen.mu.Unlock()
	switch {
	case e.Initial && !f.begun:
		f.held = append(f.held, e)
	case e.Initial && f.changesOnly:
	default:
		f.beginLocked()
		f.screen.printLocked(f.printer, e)
	}
}

// begin tells that all that is there in the beginning has come.
func (f *feed) begin() {
	f.screen.mu.Lock()
	defer f.screen.mu.Unlock()
	f.beginLocked()
}

func (f *feed) beginLocked() {
	if f.begun {
		return
	}
	f.begun = true
	slices.SortFunc(f.held, func(a, b query.Event) int { return strings.Compare(a.Key, b.Key) })
	for _, e := range f.held {
		if !f.changesOnly {
			f.screen.printLocked(f.printer, e)
		}
	}
	f.held = nil
}
