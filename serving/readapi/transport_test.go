package readapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/serving/readapi"
)

func roundTrip(t testing.TB, ctx context.Context, method string, h http.HandlerFunc) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, "http://in-process/a?b=c", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	return readapi.NewTransport(h).RoundTrip(r)
}

func TestTransport(t *testing.T) {
	tests := map[string]struct {
		method  string
		handler http.HandlerFunc
		code    int
		body    string
		err     error // error of reading the body
		failure string
	}{
		"nothing": {"GET", func(http.ResponseWriter, *http.Request) {}, 200, "", nil, ""},
		"code": {"GET", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(404)
			w.WriteHeader(200)
		}, 404, "", nil, ""},
		"body": {"POST", func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }, 200,
			"hello", nil, ""},
		"request": {"GET", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, r.RequestURI+r.Host)
		}, 200, "/a?b=cin-process", nil, ""},
		"head": {"HEAD", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") },
			200, "", nil, ""},
		"cut": {"GET", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "x")
			panic(http.ErrAbortHandler)
		}, 200, "x", io.ErrUnexpectedEOF, ""},
		"cut at once": {"GET", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0,
			"", nil, "unexpected EOF"},
		"panic": {"GET", func(http.ResponseWriter, *http.Request) { panic("oh no") }, 0,
			"", nil, "oh no"},
		"header is kept": {"GET", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(201)
			w.Header().Set("X-Late", "1")
		}, 201, "", nil, ""},
	}
	if _, ok := readapi.NewTransport(nil).(interface{ CloseIdleConnections() }); !ok {
		t.Error("the transport lacks CloseIdleConnections: clients of Kubernetes log a warning")
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			response, err := roundTrip(t, t.Context(), tt.method, tt.handler)
			if tt.failure != "" {
				if err == nil || !strings.Contains(err.Error(), tt.failure) {
					t.Errorf("error = %v, want %q", err, tt.failure)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if response.StatusCode != tt.code || string(body) != tt.body || !errors.Is(err, tt.err) {
				t.Errorf("response = %d %q %v, want %d %q %v", response.StatusCode, body, err, tt.code,
					tt.body, tt.err)
			}
			if response.Header.Get("X-Late") != "" {
				t.Error("a header was added after the headers were sent")
			}
		})
	}
}

// TestTransportCancel verifies that RoundTrip returns the cancellation if the context ends before the
// response begins.
func TestTransportCancel(t *testing.T) {
	cause := make(chan error, 1)
	entered := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }() // ends when the request arrives
	_, err := roundTrip(t, ctx, "GET", func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		cause <- r.Context().Err()
	})
	if !errors.Is(err, context.Canceled) || !errors.Is(<-cause, context.Canceled) {
		t.Errorf("RoundTrip() = %v, want context.Canceled", err)
	}
	if _, err := roundTrip(t, ctx, "GET", func(http.ResponseWriter, *http.Request) {}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("RoundTrip() with an ended context = %v, want context.Canceled", err)
	}
}
