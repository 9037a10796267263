package packed

import (
	"sync"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// maxDepth is the nesting depth at which the scanner leaves objects to apimachinery's decoder. That decoder
// rejects a depth of 10,000, including the event or list around the object.
const maxDepth = 5000

// stopReason is the reason why a scan ended early.
type stopReason uint8

const (
	stopNone        stopReason = iota
	stopEnd                    // truncated data
	stopSyntax                 // invalid JSON
	stopUnsupported            // maybe valid; left to apimachinery's decoder
)

// scanner checks the syntax of JSON and extracts the identity. Its methods take the offset of a value and
// return the offset after it. They return -1 after setting stopped.
type scanner struct {
	data          []byte
	stopped       stopReason
	removedRanges []byteRange // ranges of data to remove, in order and disjoint
	identity      identityFields
	key           []byte // scratch
}

// maxRemovedRanges is the maximum capacity of removedRanges that a pooled scanner retains.
const maxRemovedRanges = 1 << 10

var scanners = sync.Pool{New: func() any { return new(scanner) }}

func (s *scanner) release() {
	if cap(s.removedRanges) > maxRemovedRanges {
		return
	}
	*s = scanner{removedRanges: s.removedRanges[:0], key: s.key[:0]}
	scanners.Put(s)
}

type byteRange struct{ start, end int }

func (s *scanner) fail(at int) int {
	if s.stopped == stopNone {
		s.stopped = stopSyntax
		if at >= len(s.data) {
			s.stopped = stopEnd
		}
	}
	return -1
}

func (s *scanner) failUnsupported() int {
	if s.stopped == stopNone {
		s.stopped = stopUnsupported
	}
	return -1
}

// skip checks the value at i, and returns its end. depth is the nesting depth of its parent.
func (s *scanner) skip(i, depth int) int {
	end, tooDeep := jsontext.Skip(s.data, i, maxDepth-depth)
	switch {
	case tooDeep:
		return s.failUnsupported()
	case end < 0:
		return s.fail(^end)
	}
	return end
}
