package store

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/crdcache/crdcache/internal/packed"
)

const (
	// minSegment and maxSegment limit the size of a file in bytes.
	minSegment = 1 << 20
	maxSegment = 64 << 20
	// segmentDivisor divides the size of all files to get the size of a new file.
	segmentDivisor = 4
	// maxFreeSpace is the number of bytes that always remain free in the file system, or a tenth of it if
	// that is less.
	maxFreeSpace = 1 << 30
)

// segments are the files with the bodies of a store. A body that cannot be written stays in memory; the next
// attempt follows after a sweepPeriod.
type segments struct {
	folder  string
	current atomic.Pointer[packed.Segment]
	// fileBytes is the size of all files that have not been closed.
	fileBytes *atomic.Int64

	mu struct {
		sync.Mutex
		// failure is the last failure, until a file has been created. retryAt is the time of the next
		// attempt.
		failure error
		retryAt time.Time
	}
}

func newSegments(folder string) *segments {
	folder = cmp.Or(folder, os.TempDir())
	return &segments{folder: folder, fileBytes: new(atomic.Int64)}
}

// CheckFolder returns an error if no file can be created in the folder. The default is os.TempDir.
func CheckFolder(folder string) error {
	file, err := openSegment(newSegments(folder).folder, 0)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	return file.Close()
}

// move returns the object with its body in a file, or the object itself if its body has to stay in memory.
func (s *segments) move(o *packed.Object) *packed.Object {
	for {
		current := s.current.Load()
		if current == nil {
			if current = s.rotate(nil, o.Len()); current == nil {
				return o
			}
		}
		next, err := current.Move(o)
		switch {
		case err == nil:
			return next
		case !errors.Is(err, packed.ErrSegmentFull):
			s.fail(err)
			s.current.CompareAndSwap(current, nil)
			return o
		case s.rotate(current, o.Len()) == nil:
			return o
		}
	}
}

// rotate replaces the full segment with one for at least the given number of bytes, and returns the current
// segment. It returns nil after a failure.
func (s *segments) rotate(full *packed.Segment, atLeast int) *packed.Segment {
	s.mu.Lock()
	defer s.mu.Unlock()
	if current := s.current.Load(); current != full {
		return current
	}
	if s.mu.failure != nil && time.Now().Before(s.mu.retryAt) {
		return nil
	}
	size := max(minSegment, min(s.fileBytes.Load()/segmentDivisor, maxSegment), int64(atLeast))
	file, err := openSegment(s.folder, size)
	if err != nil {
		s.failLocked(err)
		return nil
	}
	s.mu.failure = nil
	next := packed.NewSegment(file, size)
	s.fileBytes.Add(size)
	runtime.AddCleanup(next, func(bytes *atomic.Int64) { bytes.Add(-size) }, s.fileBytes)
	s.current.Store(next)
	return next
}

func (s *segments) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failLocked(err)
}

func (s *segments) failLocked(err error) {
	if s.mu.failure == nil {
		utilruntime.HandleError(fmt.Errorf("objects stay in memory: %w", err))
	}
	s.mu.failure, s.mu.retryAt = err, time.Now().Add(sweepPeriod)
}

// failure returns the reason why bodies stay in memory, or nil.
func (s *segments) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.failure
}

// segments returns the files of the store, or nil.
func (s *Store) segments() *segments {
	if f, ok := s.format.(*Packed); ok && f.compressor != nil {
		return f.compressor.segments
	}
	return nil
}

// FileErr returns the reason why a store that should write bodies to files keeps them in memory, or nil.
func (s *Store) FileErr() error {
	if files := s.segments(); files != nil {
		return files.failure()
	}
	return nil
}
