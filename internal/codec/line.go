package codec

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"

	"github.com/crdcache/crdcache/internal/jsontext"
)

const (
	// smallBufferSize is the initial buffer size of a lineReader in bytes: 1,000 small watch-lists that begin
	// together need a quarter less CPU (experiment types). If more has arrived, the size is lineBufferSize.
	// Only long frames need more.
	smallBufferSize, lineBufferSize = 4 << 10, 64 << 10
	// firstReadSize is the size of the first read of a frame. It needs no buffer, so an idle watch has none.
	firstReadSize = 16
	// maxFrameSize is the size of the largest frame that client-go accepts.
	maxFrameSize = 16 << 20
)

// errNoLine is returned if the next data of the stream is not an event on one line.
var errNoLine = errors.New("the stream is not divided into lines")

// lineReader splits a stream into frames at line ends, where API servers end events. Other servers may not
// send line ends, so it counts brackets when no line end has arrived.
type lineReader struct {
	source io.ReadCloser

	buffer    []byte
	start     int // offset of the next frame in buffer
	scanned   int // offset up to which scan has read
	scan      jsontext.Extent
	failure   error // error of the source, reported after the buffered frames
	reads     int   // number of reads of the source
	firstRead [firstReadSize]byte
}

// next returns the next frame, which is valid until the next call. It returns errNoLine if the next
// byte does not begin an event.
func (r *lineReader) next() ([]byte, error) {
	for {
		if frame, err := r.bufferedFrame(); frame != nil || err != nil {
			return frame, err
		}
		switch {
		case r.failure == io.EOF && r.scan.Open():
			return nil, io.ErrUnexpectedEOF
		case r.failure != nil:
			return nil, r.failure
		case len(r.buffer)-r.start > maxFrameSize:
			r.failure = streaming.ErrObjectTooLarge
			return nil, r.failure
		}
		r.fill()
	}
}

// remainingStream returns the stream starting with frame, the last result of next. If frame is nil, it
// returns the stream after the last frame.
func (r *lineReader) remainingStream(frame []byte) io.ReadCloser {
	source := io.Reader(r.source)
	if r.failure != nil {
		source = failedReader{r.failure}
	}
	buffered := bytes.NewReader(r.buffer[r.start-len(frame):])
	r.buffer = nil // the caller reads the rest
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(buffered, source), r.source}
}

type failedReader struct{ err error }

func (f failedReader) Read([]byte) (int, error) { return 0, f.err }

// bufferedFrame returns the next frame if it is completely in the buffer, otherwise nil.
func (r *lineReader) bufferedFrame() ([]byte, error) {
	if !r.scan.Open() { // white space precedes the frame
		r.start = jsontext.SkipSpace(r.buffer, r.start)
		r.scanned = r.start
	}
	if r.scanned == len(r.buffer) {
		return nil, nil
	}
	if r.buffer[r.start] != '{' {
		return nil, errNoLine
	}
	unscanned := r.buffer[r.scanned:]
	if n := bytes.IndexByte(unscanned, '\n'); n >= 0 {
		return r.consumeFrame(r.scanned + n), nil
	}
	if end := r.scan.Advance(unscanned); end >= 0 {
		return r.consumeFrame(r.scanned + end), nil
	}
	r.scanned = len(r.buffer)
	return nil, nil
}

func (r *lineReader) consumeFrame(end int) []byte {
	frame := r.buffer[r.start:end]
	r.start, r.scanned = end, end
	r.scan = jsontext.Extent{}
	return frame
}

var (
	smallBuffers = sync.Pool{New: func() any { return new([smallBufferSize]byte) }}
	lineBuffers  = sync.Pool{New: func() any { return new([lineBufferSize]byte) }}
)

// release returns the buffer to its pool.
func (r *lineReader) release() {
	switch cap(r.buffer) {
	case smallBufferSize:
		smallBuffers.Put((*[smallBufferSize]byte)(r.buffer[:smallBufferSize]))
	case lineBufferSize:
		lineBuffers.Put((*[lineBufferSize]byte)(r.buffer[:lineBufferSize]))
	}
}

// fill makes room and reads more of the source.
func (r *lineReader) fill() {
	switch unread := r.buffer[r.start:]; {
	case len(unread) == 0:
		r.awaitFrame()
		return
	case cap(r.buffer) == smallBufferSize && len(r.buffer) > firstReadSize,
		r.start > 0 && cap(r.buffer) > lineBufferSize && len(unread) < lineBufferSize/2:
		large := append(lineBuffers.Get().(*[lineBufferSize]byte)[:0], unread...)
		r.release()
		r.buffer = large
	case r.start > 0:
		r.buffer = r.buffer[:copy(r.buffer, unread)]
	case len(r.buffer) == cap(r.buffer):
		r.buffer = append(make([]byte, 0, 2*cap(r.buffer)), r.buffer...)
	}
	r.scanned -= r.start
	r.start = 0
	n := r.read(r.buffer[len(r.buffer):cap(r.buffer)])
	r.buffer = r.buffer[:len(r.buffer)+n]
}

// awaitFrame waits for the next frame without a buffer.
func (r *lineReader) awaitFrame() {
	r.release()
	r.buffer, r.start, r.scanned = nil, 0, 0
	if n := r.read(r.firstRead[:]); n > 0 {
		r.buffer = append(smallBuffers.Get().(*[smallBufferSize]byte)[:0], r.firstRead[:n]...)
	}
}

func (r *lineReader) read(data []byte) int {
	n, err := r.source.Read(data)
	r.failure = err
	r.reads++
	return n
}
