package run

import (
	"compress/gzip"
	"errors"
	"net/http"
	"strings"
	"sync"
)

// compressWatchLists compresses watch-lists like a kube-apiserver since 1.36: each flushed piece is a gzip
// member.
func compressWatchLists(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("sendInitialEvents") != "true" ||
			!strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			next.ServeHTTP(w, r)
			return
		}
		compressed := &gzipWriter{ResponseWriter: w}
		defer func() { _ = compressed.end() }() // the client has disconnected
		next.ServeHTTP(compressed, r)
	})
}

// gzipWriters has unused writers.
var gzipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	return w
}}

// gzipWriter compresses a successful response.
type gzipWriter struct {
	http.ResponseWriter
	compresses bool
	piece      *gzip.Writer // nil between pieces
}

// WriteHeader implements http.ResponseWriter.
func (w *gzipWriter) WriteHeader(status int) {
	if w.compresses = status == http.StatusOK; w.compresses {
		w.Header().Set("Content-Encoding", "gzip")
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *gzipWriter) Write(data []byte) (int, error) {
	if !w.compresses {
		return w.ResponseWriter.Write(data)
	}
	if w.piece == nil {
		w.piece = gzipWriters.Get().(*gzip.Writer)
		w.piece.Reset(w.ResponseWriter)
	}
	return w.piece.Write(data)
}

func (w *gzipWriter) end() error {
	if w.piece == nil {
		return nil
	}
	// Without this flush, readers would wait for the next piece before they return the end of this one.
	err := errors.Join(w.piece.Flush(), w.piece.Close())
	gzipWriters.Put(w.piece)
	w.piece = nil
	return err
}

// FlushError ends a piece and sends it. http.ResponseController calls it.
func (w *gzipWriter) FlushError() error {
	if err := w.end(); err != nil {
		return err
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap supports http.ResponseController.
func (w *gzipWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
