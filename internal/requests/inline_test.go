package requests

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// nobody records nothing.
type nobody struct{ Reporter }

func (nobody) RequestStarted(Verb)  {}
func (nobody) WatchOpened()         {}
func (nobody) NoContact()           {}
func (nobody) Answer(Verb, error)   {}
func (nobody) Listed(time.Duration) {}
func (nobody) Throttled(Verb)       {}
func (nobody) Contact(bool)         {}

// inlineRequests returns what watches gadgets on the goroutine of the caller.
func inlineRequests(t *testing.T, config *rest.Config, client *http.Client, form Form) inlined {
	t.Helper()
	own, err := NewClient(config, client)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Client: own, Limiter: NewLimiter(1, time.Now), Restores: NewRestores()}
	lw := s.ListWatch(Target{GVR: gadgets, Namespace: "default", Form: form,
		Tweak: func(*metav1.ListOptions) {}}, nobody{}, NewPacer(false, false, NewRetrySignal()), nil)
	inline, ok := lw.(inlined)
	if !ok {
		t.Fatalf("got a %T", lw)
	}
	return inline
}

// inlineOutcomes watches, and returns what came of it as outcomes does.
func inlineOutcomes(t *testing.T, w inlined) []any {
	t.Helper()
	var events []any
	err := w.WatchInline(t.Context(), &metav1.ListOptions{}, func(event watch.Event) bool {
		if status, ok := event.Object.(*metav1.Status); ok {
			switch {
			case status.Message == errWatchClosed.Error():
				return true
			case status.Reason == metav1.StatusReasonInternalError:
				status.Message, status.Details = "", nil
			}
		}
		events = append(events, watch.Event{Type: event.Type, Object: unpacked(event.Object)})
		return true
	})
	return append([]any{fmt.Sprint(err)}, events...)
}

// TestInlineWatchesAreStock compares with what client-go's dynamic client makes of the same answers. Of what
// is not JSON it makes an error of the request, and this one an event; that a watch was closed at once is
// told by its reflector.
func TestInlineWatchesAreStock(t *testing.T) {
	for name, reply := range replies() {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(reply)
			defer server.Close()
			config := &rest.Config{Host: server.URL, QPS: -1}
			stock, err := dynamic.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			got := inlineOutcomes(t, inlineRequests(t, config, nil, packedForm))
			if reply.code == http.StatusOK && !strings.HasPrefix(reply.contentType, "application/json") {
				if len(got) != 2 || got[1].(watch.Event).Type != watch.Error {
					t.Errorf("got %v, want one ERROR", got)
				}
				return
			}
			want := outcomes(t, decodedResource{stock.Resource(gadgets).Namespace("default")})[2:]
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-stock +inline)\n%.3000s", diff)
			}
		})
	}
}

// TestInlineWatchesAreNotCompressed: a decompressor takes more memory than most types; and like client-go's
// watches they do not wait for the rate limit.
func TestInlineWatchesAreNotCompressed(t *testing.T) {
	var encoding, accept, query atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		encoding.Store(r.Header.Get("Accept-Encoding"))
		accept.Store(r.Header.Get("Accept"))
		query.Store(r.URL.RawQuery)
		if r.URL.RawQuery == "limit=1" { // whether the server was restored meanwhile
			_, _ = io.WriteString(w,
				`{"kind":"GadgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"7"},"items":[]}`)
		}
	}))
	defer server.Close()
	metadata := packedForm
	metadata.Metadata = true
	for want, form := range map[string]Form{wholeContent: packedForm, metadataOfEvents: metadata} {
		w := inlineRequests(t, &rest.Config{Host: server.URL, QPS: 1e-6, Burst: 1}, nil, form)
		for range 2 {
			err := w.WatchInline(t.Context(), &metav1.ListOptions{ResourceVersion: "7",
				AllowWatchBookmarks: true}, func(watch.Event) bool { return true })
			if err != nil {
				t.Fatal(err)
			}
		}
		if encoding.Load() != "identity" || accept.Load() != want ||
			query.Load() != "allowWatchBookmarks=true&resourceVersion=7&watch=true" {
			t.Errorf("asked for %q, encoded as %q, with %q", accept.Load(), encoding.Load(), query.Load())
		}
	}
}

// TestInlineWatchesAskAgain: while the server cannot be reached or wants to be left alone, after pauses; with
// any other failure all is to be listed again. The end of the context ends it at once.
func TestInlineWatchesAskAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked int
		lost := roundTrip(func(*http.Request) (*http.Response, error) {
			if asked++; asked < 4 {
				return nil, io.ErrUnexpectedEOF
			}
			return nil, http.ErrNotSupported
		})
		w := inlineRequests(t, &rest.Config{Host: "http://example.com", QPS: -1},
			&http.Client{Transport: lost}, packedForm)
		start := time.Now()
		err := w.WatchInline(t.Context(), &metav1.ListOptions{}, func(watch.Event) bool { return true })
		if err == nil || asked != 4 || time.Since(start) < 3*connectionPause.first {
			t.Errorf("asked %d times in %v, and got %v", asked, time.Since(start), err)
		}
		asked = -1 << 20
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start = time.Now()
		if err := w.WatchInline(ctx, &metav1.ListOptions{},
			func(watch.Event) bool { return true }); err == nil || time.Since(start) != time.Minute {
			t.Errorf("it ended after %v with %v", time.Since(start), err)
		}
	})
}

// roundTrip is a transport.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestInlineWatchesEndWithTheContext: also where what brings them only ends when it is closed.
func TestInlineWatchesEndWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body, server := io.Pipe()
		defer server.Close()
		stubborn := roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: body}, nil
		})
		w := inlineRequests(t, &rest.Config{Host: "http://example.com", QPS: -1},
			&http.Client{Transport: stubborn}, packedForm)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := w.WatchInline(ctx, &metav1.ListOptions{},
			func(watch.Event) bool { return true }); err != nil {
			t.Error(err)
		}
	})
}

// TestInlineWatchesAreDecompressed where a proxy compresses them although that was not asked for; so are
// refusals.
func TestInlineWatchesAreDecompressed(t *testing.T) {
	status := http.StatusOK
	goOn := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = http.NewResponseController(w).Flush() // nothing comes at first
		zipped := gzip.NewWriter(w)
		defer zipped.Close()
		if status != http.StatusOK {
			fmt.Fprint(zipped,
				`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
			return
		}
		for n := range 2 {
			fmt.Fprintf(zipped,
				`{"type":"ADDED","object":{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"a%d"}}}`+"\n", n)
			_ = zipped.Flush()
			_ = http.NewResponseController(w).Flush()
			select {
			case <-goOn:
			case <-r.Context().Done():
			}
		}
	}))
	defer server.Close()
	w := inlineRequests(t, &rest.Config{Host: server.URL, QPS: -1}, nil, packedForm)
	var names []string
	err := w.WatchInline(t.Context(), &metav1.ListOptions{}, func(event watch.Event) bool {
		o, err := meta.Accessor(event.Object)
		if err != nil {
			t.Errorf("%v: %v", event, err)
			return false
		}
		names = append(names, o.GetName())
		goOn <- struct{}{}
		return true
	})
	if err != nil || !slices.Equal(names, []string{"a0", "a1"}) {
		t.Errorf("got %q, %v", names, err)
	}
	status = http.StatusGone
	if err := w.WatchInline(t.Context(), &metav1.ListOptions{},
		func(watch.Event) bool { return true }); !apierrors.IsResourceExpired(err) {
		t.Errorf("got %v", err)
	}
}
