package readapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Config returns a client config that calls the handler within the process, without a socket and without a
// rate limit. Clients use JSON even for types that have protobuf.
func Config(h http.Handler) *rest.Config {
	return &rest.Config{
		Host: "http://in-process", Transport: NewTransport(h), QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: mediaJSON},
	}
}

// NewTransport returns a transport that calls the handler within the process, for every host. Answers are
// streamed: a watch delivers each event when it is written. It ends when its request is canceled or its body
// is closed. If the handler panics, the answer is cut, as on a server.
func NewTransport(h http.Handler) http.RoundTripper { return transport{h} }

type transport struct{ handler http.Handler }

// CloseIdleConnections does nothing: there are no connections. Clients log a warning if it is missing.
func (transport) CloseIdleConnections() {}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	serverRequest := r.Clone(ctx)
	if serverRequest.Body == nil {
		serverRequest.Body = http.NoBody
	}
	serverRequest.RequestURI = r.URL.RequestURI()
	serverRequest.Host = cmp.Or(serverRequest.Host, r.URL.Host)
	bodyReader, bodyWriter := io.Pipe()
	w := &pipeWriter{
		request: r, header: http.Header{}, pipe: bodyWriter,
		body: &pipeBody{PipeReader: bodyReader, cancel: cancel}, response: make(chan *http.Response, 1),
	}
	// Reads and writes end when the request is canceled.
	stop := context.AfterFunc(ctx, func() { bodyWriter.CloseWithError(ctx.Err()) })
	handlerErr := make(chan error, 1)
	go func() { // ends when the handler returns, which it does when the request's context ends
		defer cancel()
		defer stop()
		defer serverRequest.Body.Close()
		err := t.serve(w, serverRequest)
		if clientGone := r.Context().Err(); clientGone != nil && (err == nil || err == io.ErrUnexpectedEOF) {
			err = clientGone // the handler can have returned because of it
		}
		w.finish(err)
		handlerErr <- err
	}()
	select {
	case response := <-w.response:
		return response, nil
	case <-r.Context().Done():
		cancel()
		return nil, r.Context().Err()
	case err := <-handlerErr:
		select {
		case response := <-w.response: // the answer has begun; its body returns the error
			return response, nil
		default:
			return nil, err // without an error the handler has begun an answer
		}
	}
}

// serve calls the handler. It returns an error if the handler panics.
func (t transport) serve(w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			err = io.ErrUnexpectedEOF
		default:
			err = fmt.Errorf("the handler panicked: %v", v)
		}
	}()
	t.handler.ServeHTTP(w, r)
	return nil
}

// pipeWriter is the handler's end of an answer.
type pipeWriter struct {
	request    *http.Request
	header     http.Header
	pipe       *io.PipeWriter
	body       *pipeBody
	headerSent bool
	response   chan *http.Response
	deadline   *time.Timer // cuts the answer; nil before the first deadline
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(code int) {
	if w.headerSent {
		return
	}
	w.headerSent = true
	w.response <- &http.Response{
		Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), StatusCode: code,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: maps.Clone(w.header), Body: w.body, ContentLength: -1, Request: w.request,
	}
}

// Write implements http.ResponseWriter. It blocks until the client has read the data.
func (w *pipeWriter) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.request.Method == http.MethodHead {
		return len(data), nil
	}
	return w.pipe.Write(data)
}

// SetWriteDeadline is called by http.ResponseController. After the deadline the answer is cut.
func (w *pipeWriter) SetWriteDeadline(at time.Time) error {
	switch {
	case w.deadline == nil && !at.IsZero():
		w.deadline = time.AfterFunc(time.Until(at),
			func() { _ = w.pipe.CloseWithError(os.ErrDeadlineExceeded) })
	case w.deadline != nil && at.IsZero():
		w.deadline.Stop()
	case w.deadline != nil:
		w.deadline.Reset(time.Until(at))
	}
	return nil
}

func (w *pipeWriter) Flush() { w.WriteHeader(http.StatusOK) }

// finish ends the answer. It cuts the answer if err is not nil.
func (w *pipeWriter) finish(err error) {
	if w.deadline != nil {
		w.deadline.Stop()
	}
	if err == nil {
		w.WriteHeader(http.StatusOK)
	}
	w.pipe.CloseWithError(err) // nil means io.EOF
}

// pipeBody is the client's end of an answer. Closing it cancels the request.
type pipeBody struct {
	*io.PipeReader
	cancel context.CancelFunc
	once   sync.Once
}

// errBodyClosed is the error of writes after the client has closed the body.
var errBodyClosed = errors.New("the client has closed the body")

func (b *pipeBody) Close() error {
	b.once.Do(func() {
		_ = b.CloseWithError(errBodyClosed) // never fails
		b.cancel()
	})
	return nil
}
