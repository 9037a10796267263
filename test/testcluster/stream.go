package testcluster

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Cut forwards the given number of lines of the answer and of bytes of the next line, and then closes the
// connection. A line of a watch is an event. A list is one line.
func Cut(lines, partialBytes int) Effect {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(&cutter{ResponseWriter: w, lines: lines, partialBytes: partialBytes}, r)
	}
}

// Stall forwards like Cut, and then blocks until the client gives up. Stall(0, 0) sends only the header of
// the answer.
func Stall(lines, partialBytes int) Effect {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(&cutter{ResponseWriter: w, lines: lines, partialBytes: partialBytes,
			blockUntil: r.Context().Done()}, r)
	}
}

// DropBookmarks removes the bookmarks from a watch. A watch-list then never completes.
func DropBookmarks() Effect {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(&lineFilter{ResponseWriter: w, forwards: func(line []byte) bool {
			var event metav1.WatchEvent
			return json.Unmarshal(line, &event) != nil || event.Type != string(watch.Bookmark)
		}}, r)
	}
}

// Close ends the answer with 200, without an error, after the first line that contains the text. Without a
// text it ends immediately. For a watch, a line is an event, and the end closes the watch.
func Close(after string) Effect {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if after == "" {
			w.WriteHeader(http.StatusOK)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		next.ServeHTTP(&lineFilter{ResponseWriter: w, forwards: func(line []byte) bool {
			if ctx.Err() != nil {
				return false
			}
			if strings.Contains(string(line), after) {
				cancel()
			}
			return true
		}}, r.WithContext(ctx))
	}
}

// Corrupt makes the line after the given number of lines invalid JSON.
func Corrupt(lines int) Effect {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		before := lines
		next.ServeHTTP(&lineFilter{ResponseWriter: w, forwards: func(line []byte) bool {
			if before == 0 {
				copy(line, bytes.Repeat([]byte("#"), len(line)-1))
			}
			before--
			return true
		}}, r)
	}
}

type cutter struct {
	http.ResponseWriter
	lines, partialBytes int
	blockUntil          <-chan struct{} // if set, Write waits for it before it cuts the connection
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
	if len(rest) < c.partialBytes {
		c.partialBytes -= len(rest)
		n, err := c.ResponseWriter.Write(rest)
		return written + n, err
	}
	// The client must receive the forwarded part.
	if _, err := c.ResponseWriter.Write(rest[:c.partialBytes]); err == nil {
		// An error is irrelevant, because the connection is cut.
		_ = http.NewResponseController(c.ResponseWriter).Flush()
	}
	if c.blockUntil != nil {
		<-c.blockUntil
	}
	panic(http.ErrAbortHandler)
}

// lineFilter forwards the lines for which forwards returns true. forwards can change a line.
type lineFilter struct {
	http.ResponseWriter
	forwards func(line []byte) bool
	buffered []byte // an incomplete line
}

// Unwrap is for http.ResponseController.
func (f *lineFilter) Unwrap() http.ResponseWriter { return f.ResponseWriter }

func (f *lineFilter) Write(data []byte) (int, error) {
	f.buffered = append(f.buffered, data...)
	for {
		end := bytes.IndexByte(f.buffered, '\n')
		if end < 0 {
			return len(data), nil
		}
		line := f.buffered[:end+1]
		f.buffered = f.buffered[end+1:]
		if !f.forwards(line) {
			continue
		}
		if _, err := f.ResponseWriter.Write(line); err != nil {
			return 0, err
		}
	}
}
