package testcluster

import (
	"bytes"
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Cut forwards the given number of lines of the answer and of bytes of the next line, and then closes the
// connection. A line of a watch is an event. A list is one line.
func Cut(lines, size int) Effect {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(&cutter{ResponseWriter: w, lines: lines, size: size}, r)
	}
}

// Stall forwards like Cut, and then blocks until the client gives up. Stall(0, 0) sends only the header of
// the answer.
func Stall(lines, size int) Effect {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(&cutter{ResponseWriter: w, lines: lines, size: size,
			blockUntil: r.Context().Done()}, r)
	}
}

// DropBookmarks removes the bookmarks from a watch. A watch-list then never completes.
func DropBookmarks() Effect {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(&bookmarkDropper{ResponseWriter: w}, r)
	}
}

// Corrupt makes the line after the given number of lines invalid JSON.
func Corrupt(lines int) Effect {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(&corrupter{ResponseWriter: w, lines: lines}, r)
	}
}

type cutter struct {
	http.ResponseWriter
	lines, size int
	blockUntil  <-chan struct{} // blocks before the end; nil: do not block
}

// Unwrap is for http.ResponseController.
func (c *cutter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *cutter) Write(data []byte) (int, error) {
	written := 0
	for c.lines > 0 {
		i := bytes.IndexByte(data[written:], '\n')
		if i < 0 {
			n, err := c.ResponseWriter.Write(data[written:])
			return written + n, err
		}
		n, err := c.ResponseWriter.Write(data[written : written+i+1])
		written += n
		if err != nil {
			return written, err
		}
		c.lines--
	}
	rest := data[written:]
	if len(rest) < c.size {
		c.size -= len(rest)
		n, err := c.ResponseWriter.Write(rest)
		return written + n, err
	}
	// The client must receive the forwarded part.
	if _, err := c.ResponseWriter.Write(rest[:c.size]); err == nil {
		// An error is irrelevant, because the connection is cut.
		_ = http.NewResponseController(c.ResponseWriter).Flush()
	}
	if c.blockUntil != nil {
		<-c.blockUntil
	}
	panic(http.ErrAbortHandler)
}

type corrupter struct {
	http.ResponseWriter
	lines int // before the corrupt line; negative after it
}

// Unwrap is for http.ResponseController.
func (c *corrupter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *corrupter) Write(data []byte) (int, error) {
	corrupted := bytes.Clone(data)
	for i, b := range corrupted {
		switch {
		case b == '\n':
			c.lines--
		case c.lines == 0:
			corrupted[i] = '#'
		}
	}
	return c.ResponseWriter.Write(corrupted)
}

// bookmarkDropper buffers each line.
type bookmarkDropper struct {
	http.ResponseWriter
	buffered []byte
}

// Unwrap is for http.ResponseController.
func (d *bookmarkDropper) Unwrap() http.ResponseWriter { return d.ResponseWriter }

func (d *bookmarkDropper) Write(data []byte) (int, error) {
	d.buffered = append(d.buffered, data...)
	for {
		end := bytes.IndexByte(d.buffered, '\n')
		if end < 0 {
			return len(data), nil
		}
		line := d.buffered[:end+1]
		d.buffered = d.buffered[end+1:]
		var event metav1.WatchEvent
		if json.Unmarshal(line, &event) == nil && event.Type == string(watch.Bookmark) {
			continue
		}
		if _, err := d.ResponseWriter.Write(line); err != nil {
			return 0, err
		}
	}
}
