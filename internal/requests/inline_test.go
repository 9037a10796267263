package requests

import (
	"compress/gzip"
	"context"
	"errors"
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

// newInlineListWatch returns a listWatch of gadgets, to test WatchInline.
func newInlineListWatch(t *testing.T, config *rest.Config, client *http.Client,
	objects ObjectOptions) *listWatch {
	t.Helper()
	own, err := NewClient(config, client)
	must(t, err)
	s := &Server{Client: own, Limiter: NewListPool(1).NewLimiter(1, time.Now),
		RestoreDetector: NewRestoreDetector()}
	return s.ListWatch(Target{GVR: gadgets, Namespace: "default", Objects: objects,
		Tweak: func(*metav1.ListOptions) {}}, discardReporter{},
		NewPacer(false, false, NewRetrySignal()), nil)
}

// receiveInline returns the error and the events of WatchInline, to compare with those of receive.
func receiveInline(t *testing.T, w *listWatch) []any {
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
		events = append(events, watch.Event{Type: event.Type, Object: toUnstructured(event.Object)})
		return true
	})
	return append([]any{fmt.Sprint(err)}, events...)
}

// TestInlineWatchesAreStock compares inline watches with client-go's dynamic client. A response that is not
// JSON is an error of client-go's request, but an event here. client-go's reflector detects watches that are
// closed immediately.
func TestInlineWatchesAreStock(t *testing.T) {
	for name, reply := range replies() {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(reply)
			defer server.Close()
			config := &rest.Config{Host: server.URL, QPS: -1}
			clientGo, err := dynamic.NewForConfig(config)
			must(t, err)
			got := receiveInline(t, newInlineListWatch(t, config, nil, packedObjects))
			if reply.code == http.StatusOK && !strings.HasPrefix(reply.contentType, "application/json") {
				if len(got) != 2 || got[1].(watch.Event).Type != watch.Error {
					t.Errorf("the watch sent %v, want one ERROR", got)
				}
				return
			}
			want := receive(t, decodedResource{clientGo.Resource(gadgets).Namespace("default")})[2:]
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-stock +inline)\n%.3000s", diff)
			}
		})
	}
}

// TestInlineWatchesAreNotCompressed checks the headers, and that the watches are not rate-limited, like
// client-go's. A decompressor needs more memory than most types.
func TestInlineWatchesAreNotCompressed(t *testing.T) {
	var encoding, accept, query atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		encoding.Store(r.Header.Get("Accept-Encoding"))
		accept.Store(r.Header.Get("Accept"))
		query.Store(r.URL.RawQuery)
		if r.URL.RawQuery == "limit=1" { // the check for a restored server
			_, _ = io.WriteString(w,
				`{"kind":"GadgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"7"},"items":[]}`)
		}
	}))
	defer server.Close()
	metadata := packedObjects
	metadata.Metadata = true
	for want, objects := range map[string]ObjectOptions{wholeObjectContent: packedObjects,
		metadataOfEvents: metadata} {
		w := newInlineListWatch(t, &rest.Config{Host: server.URL, QPS: 1e-6, Burst: 1}, nil, objects)
		for range 2 {
			err := w.WatchInline(t.Context(), &metav1.ListOptions{ResourceVersion: "7",
				AllowWatchBookmarks: true}, func(watch.Event) bool { return true })
			must(t, err)
		}
		if encoding.Load() != "identity" || accept.Load() != want ||
			query.Load() != "allowWatchBookmarks=true&resourceVersion=7&watch=true" {
			t.Errorf("Accept = %q, Accept-Encoding = %q, query = %q; want %q, identity and a watch at version 7",
				accept.Load(), encoding.Load(), query.Load(), want)
		}
	}
}

// TestInlineWatchesRetry checks that watches are retried with pauses while the server cannot be reached or
// throttles. Other failures cause a relist. The end of the context ends a pause.
func TestInlineWatchesRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests int
		lost := roundTrip(func(*http.Request) (*http.Response, error) {
			if requests++; requests < 4 {
				return nil, io.ErrUnexpectedEOF
			}
			return nil, http.ErrNotSupported
		})
		w := newInlineListWatch(t, &rest.Config{Host: "http://example.com", QPS: -1},
			&http.Client{Transport: lost}, packedObjects)
		start := time.Now()
		err := w.WatchInline(t.Context(), &metav1.ListOptions{}, func(watch.Event) bool { return true })
		if err == nil || requests != 4 || time.Since(start) < 3*backoffs[stageConnection].first {
			t.Errorf("sent %d requests in %v and got the error %v, want 4 requests with pauses", requests,
				time.Since(start), err)
		}
		requests = -1 << 20
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start = time.Now()
		if err := w.WatchInline(ctx, &metav1.ListOptions{},
			func(watch.Event) bool { return true }); err == nil || time.Since(start) != time.Minute {
			t.Errorf("the watch ended after %v with %v, want an error after a minute", time.Since(start), err)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestInlineWatchesAreDecompressed verifies that watches and errors that a proxy compresses without being
// asked are decompressed.
func TestInlineWatchesAreDecompressed(t *testing.T) {
	status := http.StatusOK
	continueResponse := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = http.NewResponseController(w).Flush() // no data at first
		compressedBody := gzip.NewWriter(w)
		defer compressedBody.Close()
		if status != http.StatusOK {
			fmt.Fprint(compressedBody,
				`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
			return
		}
		for n := range 2 {
			fmt.Fprintf(compressedBody,
				`{"type":"ADDED","object":{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"a%d"}}}`+"\n", n)
			_ = compressedBody.Flush()
			_ = http.NewResponseController(w).Flush()
			select {
			case <-continueResponse:
			case <-r.Context().Done():
			}
		}
	}))
	defer server.Close()
	w := newInlineListWatch(t, &rest.Config{Host: server.URL, QPS: -1}, nil, packedObjects)
	var names []string
	err := w.WatchInline(t.Context(), &metav1.ListOptions{}, func(event watch.Event) bool {
		o, err := meta.Accessor(event.Object)
		if err != nil {
			t.Errorf("%v: %v", event, err)
			return false
		}
		names = append(names, o.GetName())
		continueResponse <- struct{}{}
		return true
	})
	if err != nil || !slices.Equal(names, []string{"a0", "a1"}) {
		t.Errorf("listed names = %q, %v; want a0 and a1", names, err)
	}
	status = http.StatusGone
	if err := w.WatchInline(t.Context(), &metav1.ListOptions{},
		func(watch.Event) bool { return true }); !apierrors.IsResourceExpired(err) {
		t.Errorf("WatchInline() = %v, want Expired", err)
	}
}

// TestInterrupt checks that Interrupt ends the open watch, or the next one if none is open. It ends only one
// watch, which is not reported as a failure.
func TestInterrupt(t *testing.T) {
	opened := make(chan struct{}, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		opened <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	w := newInlineListWatch(t, &rest.Config{Host: server.URL, QPS: -1}, nil, packedObjects)
	watches := func(ctx context.Context) <-chan error {
		ended := make(chan error, 1)
		go func() { // ends with the watch
			ended <- w.WatchInline(ctx, &metav1.ListOptions{}, func(e watch.Event) bool {
				t.Errorf("the interrupted watch sent %v, want no event", e)
				return true
			})
		}()
		return ended
	}
	ended := watches(t.Context())
	<-opened
	w.Interrupt()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	w.Interrupt()
	if err := <-watches(t.Context()); err != nil {
		t.Error(err)
	}
	<-opened
	ctx, cancel := context.WithCancel(t.Context())
	ended = watches(ctx)
	<-opened
	if w.interruption.pending() {
		t.Error("an interruption is still pending after a watch has ended")
	}
	cancel()
	<-ended
	w.pacer.mu.Lock()
	defer w.pacer.mu.Unlock()
	if n := w.pacer.mu.state.failures; n != 0 {
		t.Errorf("%d failures are recorded, want 0", n)
	}
}

// TestUpdateBeforeFirstResponse verifies that a list fails if Update replaces the connection before the first
// response: the watch after the list would use the new cluster.
func TestUpdateBeforeFirstResponse(t *testing.T) {
	requestArrived, sendResponse := make(chan struct{}, 2), make(chan struct{})
	earlierServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requestArrived <- struct{}{}
		<-sendResponse
		_, _ = io.WriteString(w, "earlier")
	}))
	defer earlierServer.Close()
	laterServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "later")
	}))
	defer laterServer.Close()
	connection, err := NewConnection(&rest.Config{Host: earlierServer.URL}, nil)
	must(t, err)
	failed := make(chan error)
	go func() { // ended by sendResponse
		_, err := getPods(connection)
		failed <- err
	}()
	<-requestArrived
	err = connection.Update(&rest.Config{Host: laterServer.URL})
	close(sendResponse)
	if refused := <-failed; err != nil || !errors.Is(refused, errReplaced) {
		t.Errorf("Update() = %v, the request in progress ended with %v; want %v", err, refused, errReplaced)
	}
	if text, err := getPods(connection); text != "later" || err != nil {
		t.Errorf("the next request got %q, %v; want the response of the later server", text, err)
	}
}

func getPods(connection *Connection) (string, error) {
	client := &http.Client{Transport: connection}
	response, err := client.Get(connection.Config().Host + "/api/v1/pods")
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// TestUpdateAfterErrors verifies that a cluster which has only sent errors, such as 401 for expired
// credentials, can be replaced by any other one. After a success, another address is refused, because
// kube-system cannot be read, and checkpoints keep the earlier one.
func TestUpdateAfterErrors(t *testing.T) {
	serve := func(code int) *httptest.Server {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/kube-system") {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, r.Host)
		}))
		t.Cleanup(server.Close)
		return server
	}
	for _, code := range []int{http.StatusOK, http.StatusUnauthorized, http.StatusForbidden,
		http.StatusBadGateway} {
		earlier, later := serve(code), serve(http.StatusOK)
		connection, err := NewConnection(&rest.Config{Host: earlier.URL}, nil)
		must(t, err)
		client, err := NewClient(connection.Config(), nil)
		must(t, err)
		_, first := getPods(connection)
		updated := connection.Update(&rest.Config{Host: later.URL})
		text, err := getPods(connection)
		if refused := err != nil; first != nil || updated != nil || refused != (code == http.StatusOK) ||
			refused == (text == later.Listener.Addr().String()) ||
			strings.HasPrefix(client.Endpoint(), earlier.URL) != refused {
			t.Errorf("after %d: the next request got %q, %v, and the endpoint is %s", code, text, err,
				client.Endpoint())
		}
	}
}
