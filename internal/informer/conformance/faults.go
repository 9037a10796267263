package conformance

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/crdcache/crdcache/serving/readapi"
	"github.com/crdcache/crdcache/test/testcluster"
)

// Faults injects faults between clients and API servers. It is safe for concurrent use.
type Faults struct {
	// A request passes counter, then gate, then answers, unless a fault of one of them answers it.
	counter, gate, answers *testcluster.Injector
	watchSeconds           atomic.Int64 // the timeout of watches, unless zero
	streams                sync.Map     // the set of the open *stream
}

// forwarded is the code of an answer without a fault.
const forwarded = http.StatusNoContent

// NewFaults returns Faults that forward all requests unchanged.
func NewFaults() *Faults {
	answers := testcluster.NewInjector(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(forwarded)
	}))
	gate := testcluster.NewInjector(answers)
	return &Faults{counter: testcluster.NewInjector(gate), gate: gate, answers: answers}
}

// Wrap returns a transport with these faults in front of next. Several can share the faults.
func (f *Faults) Wrap(next http.RoundTripper) http.RoundTripper { return faultTransport{f, next} }

// ShortenWatches sets the timeout of new watches.
func (f *Faults) ShortenWatches(seconds int) { f.watchSeconds.Store(int64(seconds)) }

// RefuseWatchList refuses watch-lists, as old servers do.
func (f *Faults) RefuseWatchList() {
	f.answers.Add(testcluster.Fault{Match: testcluster.Match{Verbs: []string{"watch-list"}},
		Effect: testcluster.Status(http.StatusUnprocessableEntity, "", "watch-lists are refused")})
}

// Fail answers the next n requests with an HTTP status.
func (f *Faults) Fail(n, status int) {
	f.answers.Add(testcluster.Fault{Times: n, Effect: testcluster.Status(status, "", "injected failure")})
}

// Hold holds new requests until release is called.
func (f *Faults) Hold() (release func()) {
	released := make(chan struct{})
	remove := f.gate.Add(testcluster.Fault{Effect: testcluster.Hold(released)})
	return sync.OnceFunc(func() {
		remove()
		close(released)
	})
}

// EndWatches ends all watches between two events without an error, as a timeout does.
func (f *Faults) EndWatches() { f.inject(nil, io.EOF) }

// BreakWatches ends all watches in the middle of an event.
func (f *Faults) BreakWatches() { f.inject([]byte(`{"type":"MODIFIED","obj`), io.ErrUnexpectedEOF) }

// ExpireWatches ends all watches with the ERROR event of an expired resource version.
func (f *Faults) ExpireWatches() {
	recorder := httptest.NewRecorder()
	testcluster.ExpiredEvent()(recorder, nil, nil)
	f.inject(recorder.Body.Bytes(), io.EOF)
}

// Bookmark sends a bookmark in all watches.
func (f *Faults) Bookmark(resourceVersion string) {
	f.inject(fmt.Appendf(nil, `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":`+
		`{"resourceVersion":%q}}}`+"\n", resourceVersion), nil)
}

// Requests returns the number of requests of a verb of testcluster.Match, without lists of one object.
func (f *Faults) Requests(verb string) int {
	return f.counter.Count(testcluster.Match{Verbs: []string{verb}})
}

func (f *Faults) inject(text []byte, end error) {
	for s := range f.streams.Range {
		s.(*stream).add(text, end)
	}
}

type faultTransport struct {
	*Faults
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t faultTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	request, _ := readapi.ParseRequest(r)
	query, isWatch := r.URL.Query(), strings.HasPrefix(request.Verb, "watch")
	recorder, faults := httptest.NewRecorder(), t.counter
	if request.Verb == "list" && query.Get("limit") == "1" {
		faults = t.gate // this checks the server's resource version after an outage
	}
	faults.ServeHTTP(recorder, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if recorder.Code != forwarded {
		answer := recorder.Result()
		answer.Request = r
		return answer, nil
	}
	if seconds := t.watchSeconds.Load(); isWatch && seconds != 0 {
		query.Set("timeoutSeconds", strconv.FormatInt(seconds, 10))
		r = r.Clone(r.Context())
		r.URL.RawQuery = query.Encode()
	}
	response, err := t.next.RoundTrip(r)
	if err != nil || !isWatch || response.StatusCode != http.StatusOK {
		return response, err
	}
	s := &stream{faults: t.Faults, body: response.Body, changed: sync.NewCond(&sync.Mutex{})}
	go s.receive() // ended by the end of the body, or by Close
	t.streams.Store(s, nil)
	response.Body = s
	return response, nil
}

// stream is the body of a watch: complete events of the server, with injected text in between.
type stream struct {
	faults *Faults
	body   io.ReadCloser

	changed *sync.Cond // its lock guards the other fields
	text    bytes.Buffer
	end     error // follows text, if it is not nil
}

// receive forwards complete events of the server.
func (s *stream) receive() {
	var line []byte
	var err error
	for lines := bufio.NewReader(s.body); err == nil; line, err = lines.ReadBytes('\n') {
		s.add(line, nil)
	}
	s.add(nil, err)
}

// add has no effect after the end.
func (s *stream) add(text []byte, end error) {
	s.changed.L.Lock()
	defer s.changed.L.Unlock()
	if s.end == nil {
		s.text.Write(text)
		s.end = end
		s.changed.Broadcast()
	}
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	s.changed.L.Lock()
	defer s.changed.L.Unlock()
	for s.text.Len() == 0 && s.end == nil {
		s.changed.Wait()
	}
	if s.text.Len() == 0 {
		return 0, s.end
	}
	return s.text.Read(p)
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.faults.streams.Delete(s)
	s.add(nil, io.EOF)
	return s.body.Close()
}
