package packed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
)

// Segment is a file with the bodies of objects. The objects refer to it, so it lives as long as they do; the
// garbage collector then closes the file. Bodies are only appended. A Segment is safe for concurrent use.
//
// The file is read with pread rather than mapped: a disk that fails is an error instead of a SIGBUS, a page
// that has to be read from the disk blocks no processor of the Go scheduler, and the pages are not part of
// the resident memory of the process.
type Segment struct {
	file *os.File
	size int64
	// types maps types of objects in memory to the types of the same objects in the segment.
	types sync.Map

	mu sync.Mutex // guards changes of the following fields
	// written is the length of the bodies in the file. pending are the bodies after them.
	written   atomic.Int64
	unwritten []byte
	// writeErr is the error that ended the writes. The pending bodies then remain in memory.
	writeErr error
}

// maxUnwritten is the length of the bodies that are written together. Single writes would take twice the
// time.
const maxUnwritten = 16 << 10

// ErrSegmentFull is returned by Segment.Move if the body does not fit.
var ErrSegmentFull = errors.New("the segment is full")

// NewSegment returns a segment that writes up to size bytes to a file, which it owns.
func NewSegment(file *os.File, size int64) *Segment { return &Segment{file: file, size: size} }

// Used returns the number of bytes that have been appended.
func (s *Segment) Used() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written.Load() + int64(len(s.unwritten))
}

// Move returns a copy of the object with its body in the segment, in the form that it has: as JSON or
// compressed. It returns the object itself if the body is part of a Block, or if there is no JSON. After an
// error of the file, the segment accepts no further bodies.
func (s *Segment) Move(o *Object) (*Object, error) {
	if o.info.block != nil || o.info.unpackableObject != nil {
		return o, nil
	}
	buffer := buffers.Get().(*pooledBuffer)
	defer buffer.release()
	body, inMemory := bytesOf(o.slab[:o.bodyLen]), o.info
	if source := o.info.segment; source != nil {
		var err error
		if buffer.bytes, err = source.appendRaw(buffer.bytes, o.bodyReference()); err != nil {
			return nil, fmt.Errorf("read %s: %w", o.Key(), err)
		}
		body, inMemory = buffer.bytes, o.info.inMemory
	}
	offset, err := s.appendBody(body)
	if err != nil {
		return nil, err
	}
	var scratch [512]byte
	slab := reference{offset, len(body)}.append(scratch[:0])
	length := len(slab)
	return o.withBody(s.typeFor(inMemory), string(o.appendIdentity(slab)), length), nil
}

func (s *Segment) appendBody(body []byte) (offset int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	offset = s.written.Load() + int64(len(s.unwritten))
	switch {
	case s.writeErr != nil:
		return 0, s.writeErr
	case offset+int64(len(body)) > s.size:
		if s.writeLocked(); s.writeErr == nil {
			s.unwritten = nil
		}
		return 0, ErrSegmentFull
	}
	s.unwritten = append(s.unwritten, body...)
	if len(s.unwritten) >= maxUnwritten {
		s.writeLocked()
	}
	return offset, nil
}

// writeLocked writes the pending bodies.
func (s *Segment) writeLocked() {
	if _, s.writeErr = s.file.WriteAt(s.unwritten, s.written.Load()); s.writeErr == nil {
		s.written.Add(int64(len(s.unwritten)))
		s.unwritten = s.unwritten[:0]
	}
}

// appendRaw appends a body as it is in the segment.
func (s *Segment) appendRaw(dst []byte, at reference) ([]byte, error) {
	if at.offset < 0 || at.length < 0 {
		return dst, errDamagedReference
	}
	if at.end() > s.written.Load() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if written := s.written.Load(); at.end() > written {
			return append(dst, s.unwritten[at.offset-written:][:at.length]...), nil
		}
	}
	start := len(dst)
	dst = slices.Grow(dst, at.length)[:start+at.length]
	if _, err := s.file.ReadAt(dst[start:], at.offset); err != nil {
		return dst[:start], err
	}
	return dst, nil
}

var errDamagedReference = errors.New("the reference to the segment is damaged")

func (s *Segment) appendJSON(dst []byte, o *Object) ([]byte, error) {
	if o.info.compressor == nil {
		return s.appendRaw(dst, o.bodyReference())
	}
	buffer := buffers.Get().(*pooledBuffer)
	defer buffer.release()
	var err error
	if buffer.bytes, err = s.appendRaw(buffer.bytes, o.bodyReference()); err != nil {
		return dst, err
	}
	return o.info.compressor.Decompress(dst, buffer.bytes)
}

// typeFor returns the type in the segment of objects with this type in memory.
func (s *Segment) typeFor(inMemory *typeInfo) *typeInfo {
	if found, ok := s.types.Load(inMemory); ok {
		return found.(*typeInfo)
	}
	info := *inMemory
	info.segment, info.inMemory = s, inMemory
	found, _ := s.types.LoadOrStore(inMemory, &info)
	return found.(*typeInfo)
}

// Segment returns the segment with the object's body, or nil.
func (o *Object) Segment() *Segment { return o.info.segment }

// reference locates a body in a segment. It is the beginning of the object's slab.
type reference struct {
	offset int64
	length int
}

func (r reference) end() int64 { return r.offset + int64(r.length) }

func (r reference) append(dst []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(r.length)), uint64(r.offset))
}

// bodyReference decodes the reference of an object of a segment.
func (o *Object) bodyReference() reference {
	encoded := bytesOf(o.slab[:o.bodyLen])
	length, n := binary.Uvarint(encoded)
	offset, _ := binary.Uvarint(encoded[n:])
	return reference{int64(offset), int(length)}
}
