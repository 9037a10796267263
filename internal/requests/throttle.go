package requests

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

const retryAfterHeader = "Retry-After"

// throttleKey is the context's key for what to call when the server throttles a request.
type throttleKey struct{}

// withThrottleNote returns a context for a request, for each 429 of which note is called with how long the server
// wants to be left alone. A client repeats such requests by itself, up to ten times, so that its caller would learn
// of it late or never; those of this context fail at once.
func withThrottleNote(ctx context.Context, note func(wait time.Duration)) context.Context {
	return context.WithValue(ctx, throttleKey{}, note)
}

// throttleWatcher is a transport that calls the note of a request's context, and makes answers what was asked for.
type throttleWatcher struct{ next http.RoundTripper }

// watchThrottling returns a copy of a client whose requests' notes are called.
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
	response, err := t.next.RoundTrip(r)
	if err == nil {
		response = detached(response)
		decompressUnasked(r, response)
	}
	if err == nil && response.StatusCode == http.StatusTooManyRequests {
		if note, ok := r.Context().Value(throttleKey{}).(func(time.Duration)); ok {
			seconds, _ := strconv.Atoi(response.Header.Get(retryAfterHeader)) // dates are not sent by API servers
			response.Header.Del(retryAfterHeader)                             // it has clients repeat the request
			note(time.Duration(seconds) * time.Second)
		}
	}
	return response, err
}

// detached returns a response like one of HTTP/2, whose stream keeps what it has returned for as long as the body is read: the
// request and the headers of both, which nobody needs any more once a watch is open.
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
