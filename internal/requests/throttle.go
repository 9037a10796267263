package requests

import (
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"time"
)

const (
	retryAfterHeader = "Retry-After"
	// http2Package has the type of the bodies of HTTP/2, which end with the context of their request. The
	// bodies of other transports may only end when they are closed.
	http2Package = "golang.org/x/net/http2"
)

// throttleWatcher is a transport that records the response in the attempt of a request's context, and makes
// answers what was asked for.
type throttleWatcher struct{ next http.RoundTripper }

// watchThrottling returns a copy of a client that records the responses to attempts.
func watchThrottling(client *http.Client) *http.Client {
	observed := *client
	next := client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	observed.Transport = throttleWatcher{next}
	return &observed
}

// RoundTrip implements http.RoundTripper.
func (t throttleWatcher) RoundTrip(r *http.Request) (*http.Response, error) {
	a, _ := r.Context().Value(attemptKey{}).(*attempt)
	if a != nil {
		a.sent()
		defer a.answered()
	}
	response, err := t.next.RoundTrip(r)
	if err != nil {
		if a != nil {
			a.failure = &url.Error{Op: "Get", URL: r.URL.String(), Err: err}
		}
		return response, err
	}
	response = detached(response)
	decompressUnasked(r, response)
	if a != nil {
		a.record(response)
	}
	return response, nil
}

// record takes note of a response. A client repeats a request by itself when the server says for how long it
// wants to be left alone. Its caller would learn of that late or never, so that the header is removed.
func (a *attempt) record(response *http.Response) {
	a.failure, a.http1 = nil, response.ProtoMajor == 1
	a.endsAlone = reflect.TypeOf(response.Body).PkgPath() == http2Package
	if !a.foreign {
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
	a.wait = time.Duration(seconds) * time.Second
	a.throttled()
}

// detached returns a response like one of HTTP/2, whose stream keeps what it has returned for as long as the
// body is read: the request and the headers of both, which nobody needs any more once a watch is open.
func detached(response *http.Response) *http.Response {
	if response.ProtoMajor != 2 {
		return response
	}
	own := *response
	response.Request, response.Header = nil, nil
	return &own
}

// WrappedRoundTripper lets client-go find the transport below.
func (t throttleWatcher) WrappedRoundTripper() http.RoundTripper { return t.next }
