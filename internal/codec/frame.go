package codec

import (
	"bytes"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
)

// framer cuts a stream into frames of one JSON object each. It writes as the framer that it holds.
type framer struct {
	runtime.Framer
}

// NewFrameReader implements runtime.Framer.
func (f *framer) NewFrameReader(r io.ReadCloser) io.ReadCloser {
	return &frameReader{source: r, stock: f.Framer}
}

// firstRead is how much a frameReader asks its source for at first, and maxIdle how much memory it keeps
// between frames at most.
const (
	firstRead = 8 << 10
	maxIdle   = 256 << 10
)

// frameReader reads one frame at a time, by counting brackets. When it meets anything but compact objects, it
// leaves the rest of the stream, from the beginning of that frame on, to the stock reader. It is not safe for
// concurrent use, but for Close.
type frameReader struct {
	source io.ReadCloser
	stock  runtime.Framer

	buffer  []byte
	start   int // of the frame in buffer
	scanned int // the end of what scan has seen of it
	scan    bracketScanner
	rest    []byte // of a frame that did not fit the caller's buffer
	failure error  // of the source, for after what has been read

	fallback io.Reader // reads the rest of the stream
}

// Read implements io.Reader, with the contract of frames: data gets one frame, or with io.ErrShortBuffer a
// part of one that the next call goes on with. A stream that ends within a frame is io.ErrUnexpectedEOF.
func (r *frameReader) Read(data []byte) (int, error) {
	if r.fallback != nil {
		return r.fallback.Read(data)
	}
	if r.rest == nil {
		if err := r.frame(); err != nil {
			return 0, err
		}
		if r.fallback != nil {
			return r.fallback.Read(data)
		}
	}
	n := copy(data, r.rest)
	if r.rest = r.rest[n:]; len(r.rest) > 0 {
		return n, io.ErrShortBuffer
	}
	r.rest = nil
	return n, nil
}

// Close implements io.Closer. It ends a blocked Read as far as closing the source does.
func (r *frameReader) Close() error { return r.source.Close() }

// frame makes rest the next frame, or sets fallback.
func (r *frameReader) frame() error {
	for {
		if r.scan.depth == 0 {
			r.skipSpace()
		}
		if r.scanned < len(r.buffer) {
			if r.scan.depth == 0 && r.buffer[r.start] != '{' {
				r.handOver()
				return nil
			}
			n, state := r.scan.advance(r.buffer[r.scanned:])
			r.scanned += n
			switch state {
			case scanComplete:
				r.rest = r.buffer[r.start:r.scanned]
				r.start = r.scanned
				r.scan = bracketScanner{}
				return nil
			case scanUnusual:
				r.handOver()
				return nil
			}
		}
		if r.failure != nil {
			return r.ended()
		}
		r.fill()
	}
}

// skipSpace moves the beginning of the frame behind white space.
func (r *frameReader) skipSpace() {
	for r.start < len(r.buffer) && bytes.IndexByte([]byte(" \t\r\n"), r.buffer[r.start]) >= 0 {
		r.start++
	}
	r.scanned = r.start
}

// ended is the error for a source that has nothing more.
func (r *frameReader) ended() error {
	if r.failure == io.EOF && r.scan.depth > 0 {
		return io.ErrUnexpectedEOF
	}
	return r.failure
}

// fill reads more of the source, after making room.
func (r *frameReader) fill() {
	if r.start > 0 {
		kept := len(r.buffer) - r.start
		if cap(r.buffer) > maxIdle && kept < maxIdle/2 {
			r.buffer = append(make([]byte, 0, maxIdle), r.buffer[r.start:]...)
		} else {
			copy(r.buffer, r.buffer[r.start:])
			r.buffer = r.buffer[:kept]
		}
		r.scanned -= r.start
		r.start = 0
	}
	if len(r.buffer) == cap(r.buffer) {
		r.buffer = append(make([]byte, 0, max(firstRead, 2*cap(r.buffer))), r.buffer...)
	}
	n, err := r.source.Read(r.buffer[len(r.buffer):cap(r.buffer)])
	r.buffer = r.buffer[:len(r.buffer)+n]
	r.failure = err
}

// handOver leaves the rest of the stream, from the beginning of the frame on, to the stock reader.
func (r *frameReader) handOver() {
	unread := io.Reader(r.source)
	if r.failure != nil {
		unread = &failedReader{r.failure}
	}
	r.fallback = r.stock.NewFrameReader(io.NopCloser(io.MultiReader(bytes.NewReader(r.buffer[r.start:]), unread)))
	r.buffer = nil // now the bytes.Reader's
}

// failedReader is a source that has failed already.
type failedReader struct{ err error }

func (f *failedReader) Read([]byte) (int, error) { return 0, f.err }
