package packed

import (
	"sync"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// maxDepth is the depth from which on objects are left to the stock decoder, which refuses them at 10,000 and
// counts an event or a list around them, too.
const maxDepth = 5000

// stop is why a scan ended early.
type stop uint8

const (
	stopNever   stop = iota
	stopEnd          // the data ends too early
	stopSyntax       // the data is not JSON
	stopUnusual      // the data may be right, but is for the stock decoder
)

// scanner checks the syntax of JSON. Its methods take the offset of what they read and return the offset
// after it, or -1 after having set stopped.
type scanner struct {
	data    []byte
	stopped stop
	cuts    []span // what to leave out of data, in order and apart from each other
	found   identityOf
	key     []byte // memory for reuse
}

// maxCuts is how many cuts a scanner keeps room for between scans.
const maxCuts = 1 << 10

var scanners = sync.Pool{New: func() any { return new(scanner) }}

func (s *scanner) release() {
	if cap(s.cuts) > maxCuts {
		return
	}
	*s = scanner{cuts: s.cuts[:0], key: s.key[:0]}
	scanners.Put(s)
}

// span is a part of data.
type span struct{ start, end int }

func (s *scanner) fail(at int) int {
	if s.stopped == stopNever {
		s.stopped = stopSyntax
		if at >= len(s.data) {
			s.stopped = stopEnd
		}
	}
	return -1
}

func (s *scanner) unusual() int {
	if s.stopped == stopNever {
		s.stopped = stopUnusual
	}
	return -1
}

// skip reads the value at i. depth is that of what is around it.
func (s *scanner) skip(i, depth int) int {
	end, deep := jsontext.Skip(s.data, i, maxDepth-depth)
	switch {
	case deep:
		return s.unusual()
	case end < 0:
		return s.fail(^end)
	}
	return end
}
