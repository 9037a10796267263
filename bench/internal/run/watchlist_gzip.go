package run

import (
	"compress/gzip"
	"errors"
	"net/http"
	"strings"
	"sync"
)

// compressWatchLists has a server answer watch-lists as a kube-apiserver since 1.36 does: compressed, each
// piece that is flushed by itself.
func compressWatchLists(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("sendInitialEvents") != "true" ||
			!strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			next.ServeHTTP(w, r)
			return
		}
		compressed := &gzipWriter{ResponseWriter: w}
		defer func() { _ = compressed.end() }() // the client has gone: nobody is left to tell
		next.ServeHTTP(compressed, r)
	})
}

// gzipWriters are not in use.
var gzipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is a valid one
	return w
}}

// gzipWriter is an answer that is compressed if it is one of success.
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

// end ends a piece.
func (w *gzipWriter) end() error {
	if w.piece == nil {
		return nil
	}
	// The end of a piece alone, after its last bytes, has readers wait for the next one before they hand
	// those out.
	err := errors.Join(w.piece.Flush(), w.piece.Close())
	gzipWriters.Put(w.piece)
	w.piece = nil
	return err
}

// FlushError ends a piece and sends it. It is what http.ResponseController calls.
func (w *gzipWriter) FlushError() error {
	if err := w.end(); err != nil {
		return err
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (w *gzipWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
