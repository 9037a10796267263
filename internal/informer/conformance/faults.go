package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Faults is a http.RoundTripper that injects faults between a client and an API server. It is safe for
// concurrent use.
type Faults struct {
	next http.RoundTripper

	mu struct {
		sync.Mutex
		streams map[*stream]bool
		// failures is the number of requests to answer with status.
		failures int
		status   int
		// noWatchList refuses watch-lists, as old servers do.
		noWatchList bool
		// gate is closed to release requests; nil if they are not held.
		gate chan struct{}
		// watchSeconds, unless zero, is the timeout of watches.
		watchSeconds int
		// requests counts by verb.
		requests map[string]int
	}
}

// NewFaults returns a transport in front of next, which can be nil if only Wrap is used.
func NewFaults(next http.RoundTripper) *Faults {
	f := &Faults{next: next}
	f.mu.streams = map[*stream]bool{}
	f.mu.requests = map[string]int{}
	return f
}

// Wrap returns a transport with these faults in front of next. Several can share the faults.
func (f *Faults) Wrap(next http.RoundTripper) http.RoundTripper {
	return faultTransport{faults: f, next: next}
}

type faultTransport struct {
	faults *Faults
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (w faultTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return w.faults.roundTrip(r, w.next)
}

// ShortenWatches sets the timeout of new watches.
func (f *Faults) ShortenWatches(seconds int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.watchSeconds = seconds
}

// RefuseWatchList refuses watch-lists, as old servers do.
func (f *Faults) RefuseWatchList() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.noWatchList = true
}

// Fail answers the next n requests with an HTTP status.
func (f *Faults) Fail(n, status int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.failures, f.mu.status = n, status
}

// Hold holds new requests until release is called.
func (f *Faults) Hold() (release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	gate := make(chan struct{})
	f.mu.gate = gate
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.mu.gate = nil
		close(gate)
	})
}

// EndWatches ends all watches between two events without an error, as a timeout does.
func (f *Faults) EndWatches() { f.each(func(s *stream) { s.inject(streamChunk{end: io.EOF}) }) }

// BreakWatches ends all watches in the middle of an event.
func (f *Faults) BreakWatches() {
	f.each(func(s *stream) {
		s.inject(streamChunk{text: []byte(`{"type":"MODIFIED","obj`), end: io.ErrUnexpectedEOF})
	})
}

// ExpireWatches ends all watches with the ERROR event of an expired resource version.
func (f *Faults) ExpireWatches() {
	f.each(func(s *stream) { s.inject(streamChunk{text: frame("ERROR", expiredStatus()), end: io.EOF}) })
}

// Bookmark sends a bookmark in all watches.
func (f *Faults) Bookmark(resourceVersion string) {
	object := map[string]any{
		"kind":       "ConfigMap",
		"apiVersion": "v1",
		"metadata":   map[string]any{"resourceVersion": resourceVersion},
	}
	f.each(func(s *stream) { s.inject(streamChunk{text: frame("BOOKMARK", object)}) })
}

// Requests returns the number of requests of a verb: list (or get), check (a list of one object), watch,
// watch-list or write.
func (f *Faults) Requests(verb string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.requests[verb]
}

func expiredStatus() metav1.Status {
	status := apierrors.NewResourceExpired("too old resource version").Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return status
}

func frame(kind string, object any) []byte {
	body, err := json.Marshal(map[string]any{"type": kind, "object": object})
	if err != nil {
		panic(err) // only literals of this file come here
	}
	return append(body, '\n')
}

func (f *Faults) each(do func(*stream)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.mu.streams {
		do(s)
	}
}

// RoundTrip implements http.RoundTripper.
func (f *Faults) RoundTrip(r *http.Request) (*http.Response, error) { return f.roundTrip(r, f.next) }

func (f *Faults) roundTrip(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	verb := verbOf(r)
	gate, status := f.admit(verb)
	if gate != nil {
		select {
		case <-gate:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	if status != 0 {
		return failure(r, status), nil
	}
	response, err := next.RoundTrip(f.withWatchTimeout(r, verb))
	if err != nil || !strings.HasPrefix(verb, "watch") || response.StatusCode != http.StatusOK {
		return response, err
	}
	s := newStream(response.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.streams[s] = true
	s.closed = func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.mu.streams, s)
	}
	response.Body = s
	return response, nil
}

func (f *Faults) withWatchTimeout(r *http.Request, verb string) *http.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.watchSeconds == 0 || !strings.HasPrefix(verb, "watch") {
		return r
	}
	r = r.Clone(r.Context())
	query := r.URL.Query()
	query.Set("timeoutSeconds", strconv.Itoa(f.mu.watchSeconds))
	r.URL.RawQuery = query.Encode()
	return r
}

func verbOf(r *http.Request) string {
	query := r.URL.Query()
	switch {
	case r.Method != http.MethodGet:
		return "write"
	case query.Get("watch") == "" && query.Get("limit") == "1":
		return "check" // of the server's resource version, after an outage
	case query.Get("watch") == "":
		return "list"
	case query.Get("sendInitialEvents") == "true":
		return "watch-list"
	default:
		return "watch"
	}
}

// admit counts a request. The request has to wait for gate, if that is not nil, and is answered with status,
// if that is not zero.
func (f *Faults) admit(verb string) (gate chan struct{}, status int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.requests[verb]++
	switch {
	case f.mu.failures > 0:
		f.mu.failures--
		return f.mu.gate, f.mu.status
	case verb == "watch-list" && f.mu.noWatchList:
		return f.mu.gate, http.StatusUnprocessableEntity
	}
	return f.mu.gate, 0
}

func failure(r *http.Request, status int) *http.Response {
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Message:  fmt.Sprintf("injected failure %d", status),
		Reason:   metav1.StatusReasonUnknown,
		Code:     int32(status),
	})
	if err != nil {
		panic(err) // a Status can always be encoded
	}
	return &http.Response{
		StatusCode: status,
		Status:     http.StatusText(status),
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:  http.Header{"Content-Type": {"application/json"}},
		Body:    io.NopCloser(bytes.NewReader(body)),
		Request: r,
	}
}

// stream is the body of a watch: complete events of the server, with injected parts in between.
type stream struct {
	body   io.ReadCloser
	reader *io.PipeReader
	parts  chan streamChunk
	done   chan struct{}
	stop   func()
	closed func()
}

// streamChunk is the next part of a stream.
type streamChunk struct {
	text []byte
	end  error // ends the stream, if it is not nil
}

func newStream(body io.ReadCloser) *stream {
	reader, writer := io.Pipe()
	s := &stream{body: body, reader: reader, parts: make(chan streamChunk, 64), done: make(chan struct{})}
	s.stop = sync.OnceFunc(func() { close(s.done) })
	go s.receive()    // ended by the end of the body, or by Close
	go s.send(writer) // ended by Close, or by a part with an end
	return s
}

// receive forwards complete events of the server.
func (s *stream) receive() {
	var pending strings.Builder
	buffer := make([]byte, 32<<10)
	for {
		n, err := s.body.Read(buffer)
		pending.Write(buffer[:n])
		if cut := strings.LastIndexByte(pending.String(), '\n'); cut >= 0 {
			complete, rest := pending.String()[:cut+1], pending.String()[cut+1:]
			s.inject(streamChunk{text: []byte(complete)})
			pending.Reset()
			pending.WriteString(rest)
		}
		if err != nil {
			s.inject(streamChunk{end: err})
			return
		}
	}
}

func (s *stream) send(writer *io.PipeWriter) {
	for {
		select {
		case p := <-s.parts:
			if len(p.text) > 0 {
				if _, err := writer.Write(p.text); err != nil {
					return
				}
			}
			if p.end != nil {
				writer.CloseWithError(p.end)
				return
			}
		case <-s.done:
			writer.CloseWithError(io.EOF)
			return
		}
	}
}

func (s *stream) inject(p streamChunk) {
	select {
	case s.parts <- p:
	case <-s.done:
	}
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) { return s.reader.Read(p) }

// Close implements io.Closer.
func (s *stream) Close() error {
	s.stop()
	s.closed()
	_ = s.reader.Close()
	return s.body.Close()
}
