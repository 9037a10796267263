package codec

import (
	"bytes"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"

	"github.com/crdcache/crdcache/internal/jsontext"
)

const (
	// lineBuffer is the size of the buffer of a lineReader. Only long frames need more.
	lineBuffer = 64 << 10
	// firstBytes is how much of what comes next is read before there is a buffer: watches that nothing comes on need none.
	firstBytes = 16
	// maxFrame is the size from which on client-go refuses frames.
	maxFrame = 16 << 20
)

// lineReader cuts a stream into frames at the ends of lines, which is where API servers end events. Where the end
// of a line has not come yet it counts brackets, because others may send none. What is no event by its first byte it
// leaves to the stock reader, with all that follows; so it does when told to hand over. While it waits for a frame it has
// no buffer. It is not safe for concurrent use, but for Close.
type lineReader struct {
	source io.ReadCloser
	stock  runtime.Framer

	buffer  []byte
	frame   int // where the last frame begins in buffer
	start   int // where the next one does
	scanned int // the end of what scan has seen of it
	scan    bracketScanner
	rest    []byte // of a frame that did not fit the caller's buffer
	failure error  // of the source, for after what has been read
	reads   int    // of the source
	first   [firstBytes]byte

	fallback io.ReadCloser // reads the rest of the stream
}

// Read implements io.Reader, with the contract of frames: data gets one frame, or with io.ErrShortBuffer a
// part of one that the next call goes on with. A stream that ends within a frame is io.ErrUnexpectedEOF.
func (r *lineReader) Read(data []byte) (int, error) {
	if r.fallback != nil {
		return r.fallback.Read(data)
	}
	if r.rest == nil {
		frame, err := r.next()
		if err != nil {
			return 0, err
		}
		if r.fallback != nil {
			return r.fallback.Read(data)
		}
		r.rest = frame
	}
	n := copy(data, r.rest)
	if r.rest = r.rest[n:]; len(r.rest) > 0 {
		return n, io.ErrShortBuffer
	}
	r.rest = nil
	return n, nil
}

// Close implements io.Closer. It ends a blocked Read as far as closing the source does.
func (r *lineReader) Close() error { return r.source.Close() }

// inLines reports whether the last frame was a line, or the beginning of one.
func (r *lineReader) inLines() bool { return r.fallback == nil }

// handOver leaves the stream from the beginning of the last frame on to the stock reader, and returns that.
func (r *lineReader) handOver() io.ReadCloser {
	r.start = r.frame
	r.leave()
	return r.fallback
}

// leave sets fallback, to read from start on.
func (r *lineReader) leave() {
	unread := io.Reader(r.source)
	if r.failure != nil {
		unread = &failedReader{r.failure}
	}
	r.fallback = r.stock.NewFrameReader(io.NopCloser(io.MultiReader(bytes.NewReader(r.buffer[r.start:]), unread)))
	r.buffer, r.rest = nil, nil // now the bytes.Reader's
}

// next returns the next frame, or sets fallback.
func (r *lineReader) next() ([]byte, error) {
	for {
		if frame := r.take(); frame != nil || r.fallback != nil {
			return frame, nil
		}
		switch {
		case r.failure == io.EOF && r.scan.depth > 0:
			return nil, io.ErrUnexpectedEOF
		case r.failure != nil:
			return nil, r.failure
		case len(r.buffer)-r.start > maxFrame:
			r.failure = streaming.ErrObjectTooLarge
			return nil, r.failure
		}
		r.fill()
	}
}

// take returns the next frame if all of it is in the buffer, or sets fallback, or returns nil.
func (r *lineReader) take() []byte {
	if r.scan.depth == 0 {
		r.skipSpace()
	}
	if r.scanned == len(r.buffer) {
		return nil
	}
	if r.buffer[r.start] != '{' {
		r.leave()
		return nil
	}
	if end := r.end(); end > 0 {
		return r.cut(end)
	}
	return nil
}

// end returns the offset after the frame, without the end of the line, or 0 when it has not been read yet or r has left.
func (r *lineReader) end() int {
	unseen := r.buffer[r.scanned:]
	if n := bytes.IndexByte(unseen, '\n'); n >= 0 {
		return r.scanned + n
	}
	n, state := r.scan.advance(unseen)
	r.scanned += n
	switch state {
	case scanComplete:
		return r.scanned
	case scanUnusual:
		r.leave()
	}
	return 0
}

// cut takes the frame that ends at end.
func (r *lineReader) cut(end int) []byte {
	r.frame, r.start, r.scanned = r.start, end, end
	r.scan = bracketScanner{}
	return r.buffer[r.frame:end]
}

// skipSpace moves the beginning of the frame behind white space.
func (r *lineReader) skipSpace() {
	for r.start < len(r.buffer) && jsontext.IsSpace(r.buffer[r.start]) {
		r.start++
	}
	r.scanned = r.start
}

// lineBuffers are not in use.
var lineBuffers = sync.Pool{New: func() any { return new([lineBuffer]byte) }}

// fill reads more of the source, after making room.
func (r *lineReader) fill() {
	switch kept := r.buffer[r.start:]; {
	case len(kept) == 0:
		r.await()
		return
	case r.start > 0 && cap(r.buffer) > lineBuffer && len(kept) < lineBuffer/2:
		r.buffer = append(lineBuffers.Get().(*[lineBuffer]byte)[:0], kept...)
	case r.start > 0:
		r.buffer = r.buffer[:copy(r.buffer, kept)]
	case len(r.buffer) == cap(r.buffer):
		r.buffer = append(make([]byte, 0, 2*cap(r.buffer)), r.buffer...)
	}
	r.scanned -= r.start
	r.frame, r.start = 0, 0
	n := r.read(r.buffer[len(r.buffer):cap(r.buffer)])
	r.buffer = r.buffer[:len(r.buffer)+n]
}

// await waits for the next frame without a buffer.
func (r *lineReader) await() {
	if cap(r.buffer) == lineBuffer {
		lineBuffers.Put((*[lineBuffer]byte)(r.buffer[:lineBuffer]))
	}
	r.buffer, r.frame, r.start, r.scanned = nil, 0, 0, 0
	if n := r.read(r.first[:]); n > 0 {
		r.buffer = append(lineBuffers.Get().(*[lineBuffer]byte)[:0], r.first[:n]...)
	}
}

func (r *lineReader) read(data []byte) int {
	n, err := r.source.Read(data)
	r.failure = err
	r.reads++
	return n
}
