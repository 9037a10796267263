package requests

import (
	"cmp"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"time"
)

const (
	retryAfterHeader = "Retry-After"
	// http2Package defines the bodies of HTTP/2 responses, which end with the context of their request. The
	// bodies of other transports may only end when they are closed.
	http2Package = "golang.org/x/net/http2"
)

// responseRecorder is a transport that decompresses responses, and records them in the context's attempt.
type responseRecorder struct {
	next http.RoundTripper
	gzip bool // next requests compressed responses
}

// recordResponses returns a copy of a client that records responses in attempts.
func recordResponses(client *http.Client) *http.Client {
	observed := *client
	next := cmp.Or(client.Transport, http.DefaultTransport)
	observed.Transport = responseRecorder{next, requestsGzip(next)}
	return &observed
}

func (t responseRecorder) RoundTrip(r *http.Request) (*http.Response, error) {
	a, _ := r.Context().Value(attemptKey{}).(*attempt)
	if a != nil {
		a.abortAfter(a.headerTimeout)
		defer a.headersArrived()
	}
	sent := r
	if t.gzip {
		sent = withGzip(r)
	}
	response, err := t.next.RoundTrip(sent)
	if err != nil {
		if a != nil {
			a.failure = &url.Error{Op: "Get", URL: r.URL.String(), Err: err}
		}
		return response, err
	}
	response = detachResponse(response)
	isHTTP2 := reflect.TypeOf(response.Body).PkgPath() == http2Package
	decompress(r, response)
	if a != nil {
		a.closesWithContext = isHTTP2
		a.record(response)
	}
	return response, nil
}

// record records a response. It removes the Retry-After header, because the client would wait and retry by
// itself, and its caller would not notice.
func (a *attempt) record(response *http.Response) {
	a.failure, a.http1 = nil, response.ProtoMajor == 1
	if a.limiter != nil {
		a.limiter.recordContact(true)
	}
	if !a.clientReads {
		response.Body = watchedBody{response.Body, a}
	}
	retryAfter := response.Header.Get(retryAfterHeader)
	switch {
	case response.StatusCode == http.StatusTooManyRequests:
	case response.StatusCode >= http.StatusInternalServerError && retryAfter != "":
	default:
		return
	}
	seconds, _ := strconv.Atoi(retryAfter) // API servers send no dates
	response.Header.Del(retryAfterHeader)
	a.retryAfter = time.Duration(seconds) * time.Second
}

// detachResponse returns a copy of an HTTP/2 response and clears the original. The stream retains the
// original as long as the body is read, with the request and both headers, which an open watch does not need.
func detachResponse(response *http.Response) *http.Response {
	if response.ProtoMajor != 2 {
		return response
	}
	detached := *response
	response.Request, response.Header = nil, nil
	return &detached
}

// WrappedRoundTripper implements the interface by which client-go finds the underlying transport.
func (t responseRecorder) WrappedRoundTripper() http.RoundTripper { return t.next }
