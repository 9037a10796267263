package requests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/informer"
)

// wrappedClient wraps a client of NewClient, as a program does for tracing.
type wrappedClient struct{ dynamic.Interface }

// TestWrappedClient verifies that a watch through a wrapped client, whose body is read on another goroutine,
// delivers all events. With -race, it detects unsynchronized timers.
func TestWrappedClient(t *testing.T) {
	const objects = 50
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for range objects {
			fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", jsonGadget)
			w.(http.Flusher).Flush()
		}
	}))
	defer server.Close()
	own, err := NewClient(&rest.Config{Host: server.URL, QPS: -1}, nil)
	must(t, err)
	s := &Server{Client: wrappedClient{own}, Limiter: NewListPool(1).NewLimiter(1, time.Now),
		RestoreDetector: NewRestoreDetector()}
	noTweak := func(*metav1.ListOptions) {}
	target := Target{GVR: gadgets, Namespace: "default", Objects: packedObjects, Tweak: noTweak}
	lw := s.ListWatch(target, discardReporter{}, NewPacer(false, false, NewRetrySignal()), nil)
	seconds := int64(600)
	n := 0
	err = lw.WatchInline(t.Context(), &metav1.ListOptions{TimeoutSeconds: &seconds},
		func(watch.Event) bool {
			n++
			return true
		})
	must(t, err)
	if n < objects {
		t.Errorf("received %d events, want at least %d", n, objects)
	}
}

// fixedEvents is a stream of events that are available immediately.
type fixedEvents struct{ events []watch.Event }

func (f *fixedEvents) Next() (watch.Event, bool, error) {
	if len(f.events) == 0 {
		return watch.Event{}, true, io.EOF
	}
	event := f.events[0]
	f.events = f.events[1:]
	return event, true, nil
}

func (f *fixedEvents) Close() error { return nil }

// TestShortWatchOfOtherShards checks that a short watch does not count as empty if all its events are outside
// the shard.
func TestShortWatchOfOtherShards(t *testing.T) {
	var reports recordingReporter
	l := &listWatch{
		continuity: NewRestoreDetector().Continuity("", nil), reports: &reports,
		pacer: NewPacer(false, false, NewRetrySignal()), limiter: NewListPool(1).NewLimiter(1, time.Now),
	}
	o := &openWatch{verb: VerbWatch, began: time.Now(), events: &fixedEvents{make([]watch.Event, 3)}}
	o.ctx, o.attempt = newAttempt(t.Context(), InitialEventsTimeout)
	l.closeOnEnd(o)
	var got []watch.Event
	l.forward(o, func(e watch.Event) bool { got = append(got, e); return true })
	l.endWatch(o)
	if len(got) > 0 {
		t.Errorf("forwarded the events %v, with the reports %v; want no events", got, reports.calls)
	}
}

// bodyTransport is a transport that responds to each request with a body.
type bodyTransport func(r *http.Request) io.ReadCloser

func (b bodyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: b(r), Request: r, ProtoMajor: 1,
	}, nil
}

func listWatchFor(t *testing.T, body bodyTransport) *listWatch {
	config := &rest.Config{Host: "http://server.test", QPS: -1}
	return newInlineListWatch(t, config, &http.Client{Transport: body}, packedObjects)
}

// TestWatchListCutAnywhere truncates a watch-list after each byte. The complete events arrive, then an error.
func TestWatchListCutAnywhere(t *testing.T) {
	const end = `{"type":"BOOKMARK","object":{"apiVersion":"example.com/v1","kind":"Gadget","metadata":` +
		`{"resourceVersion":"12","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"
	added := `{"type":"ADDED","object":` + jsonGadget + "}\n"
	wholeBody := added + added + end
	for n := range len(wholeBody) + 1 {
		for _, failure := range []error{io.EOF, io.ErrUnexpectedEOF, errors.New("reset")} {
			w := listWatchFor(t, func(*http.Request) io.ReadCloser {
				return io.NopCloser(io.MultiReader(strings.NewReader(wholeBody[:n]),
					failingReader{err: failure}))
			})
			var kinds []string
			initial := true
			options := metav1.ListOptions{SendInitialEvents: &initial}
			err := w.WatchInline(t.Context(), &options, func(e watch.Event) bool {
				kinds = append(kinds, string(e.Type))
				return !endsInitialEvents(e)
			})
			want := strings.Repeat("ADDED ", min(2, (n+1)/len(added))) + "ERROR"
			if n >= len(wholeBody)-1 {
				want = "ADDED ADDED BOOKMARK"
			}
			if got := strings.Join(kinds, " "); got != want || err != nil {
				t.Fatalf("cut at %d (%v): %q, want %q; %v", n, failure, got, want, err)
			}
			if held, _, _ := w.limiter.Load(); held != 0 {
				t.Fatalf("truncated at %d: a list slot was not released", n)
			}
		}
	}
}

// TestResetStreams verifies that a watch whose HTTP/2 stream a proxy has reset continues without a list, and
// that the failure of a watch-list says what happened.
func TestResetStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := listWatchFor(t, func(*http.Request) io.ReadCloser {
			return io.NopCloser(io.MultiReader(strings.NewReader(`{"type":"ADDED","object":`+jsonGadget+"}\n"),
				failingReader{errors.New("stream error: stream ID 5; INTERNAL_ERROR; received from peer"), 6 * time.Second}))
		})
		for _, initial := range []bool{false, true} {
			var failures []string
			err := w.WatchInline(t.Context(), &metav1.ListOptions{ResourceVersion: "1",
				SendInitialEvents: &initial},
				func(e watch.Event) bool {
					if e.Type == watch.Error {
						failures = append(failures, apierrors.FromObject(e.Object).Error())
					}
					return true
				})
			var want []string
			if initial {
				want = []string{"the connection was cut after 6s without an event"}
			}
			if err != nil || !slices.Equal(failures, want) {
				t.Errorf("WatchInline() = %v with the failures %q, want %q", err, failures, want)
			}
		}
	})
}

type failingReader struct {
	err   error
	after time.Duration
}

func (f failingReader) Read([]byte) (int, error) {
	time.Sleep(f.after)
	return 0, f.err
}

// TestWhiteSpaceIsNotProgress checks that line ends from a proxy do not keep an incomplete watch-list open.
func TestWhiteSpaceIsNotProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := listWatchFor(t, func(r *http.Request) io.ReadCloser {
			body, events := io.Pipe()
			go func() {
				for r.Context().Err() == nil {
					if _, err := io.WriteString(events, "\n"); err != nil {
						return
					}
					select {
					case <-time.After(20 * time.Second):
					case <-r.Context().Done():
					}
				}
				events.CloseWithError(r.Context().Err())
			}()
			return body
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		initial := true
		options := metav1.ListOptions{SendInitialEvents: &initial}
		_ = w.WatchInline(ctx, &options, func(watch.Event) bool { return true })
		if elapsed := time.Since(began); elapsed > time.Minute {
			t.Errorf("the watch-list ended after %v, want at most a minute", elapsed)
		}
	})
}

// randomWatchList returns random events of a watch-list up to its end, for objects of few names.
func randomWatchList(seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 1))
	var events strings.Builder
	version := 100
	write := func(kind, object string) { fmt.Fprintf(&events, `{"type":%q,"object":%s}`+"\n", kind, object) }
	gadget := func(name int) string {
		version++
		return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"g%d","namespace":"default","resourceVersion":"%d"},"spec":{"n":%d}}`, name, version, r.IntN(3))
	}
	for name := range r.IntN(6) {
		write("ADDED", gadget(name))
	}
	for range r.IntN(8) {
		name := r.IntN(6)
		switch r.IntN(10) {
		case 0:
			write("BOOKMARK", fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"resourceVersion":"%d"}}`,
				version))
		case 1:
			write("ADDED", `{"apiVersion":"meta.k8s.io/v1","kind":"Table","metadata":{"resourceVersion":"7"},"columnDefinitions":[],"rows":[]}`)
		case 2, 3:
			write("DELETED", gadget(name))
		case 4, 5:
			write("ADDED", gadget(name))
		case 6:
			write("MODIFIED", strings.Replace(gadget(name), `"spec"`, `"SPEC":1,"spec"`,
				1)) // an object that cannot be packed
		default:
			write("MODIFIED", gadget(name))
		}
	}
	write("BOOKMARK", fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"annotations":{"k8s.io/initial-events-end":"true"},"resourceVersion":"%d"}}`, version+1))
	return events.String()
}

// eventServer responds to watch-lists with events, and to other watches without events. If fails is set, the
// first watch-list ends with an ERROR.
func eventServer(events string, fails bool) http.Handler {
	var requests atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("sendInitialEvents") == "true" {
			if requests.Add(1) == 1 && fails {
				lines := strings.SplitAfter(events, "\n")
				fmt.Fprint(w, strings.Join(lines[:len(lines)/2], ""))
				fmt.Fprintln(w,
					`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"too old","code":410}}`)
				return
			}
			fmt.Fprint(w, events)
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
}

// storedJSON returns the versions of all objects in a store.
func storedJSON(t *testing.T, store cache.Store) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for _, obj := range store.List() {
		o, err := meta.Accessor(obj)
		must(t, err)
		versions[o.GetNamespace()+"/"+o.GetName()] = o.GetResourceVersion()
	}
	return versions
}

// TestCollectedWatchListsAreStock checks that the content after any watch-list is that of client-go's
// informer.
func TestCollectedWatchListsAreStock(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			events := randomWatchList(seed)
			fails := seed%8 == 0
			want := contentAfterWatchList(t, events, fails, clientGoInformer)
			got := contentAfterWatchList(t, events, fails, crdcacheInformer)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-stock +ours)\n%s\n%s", diff, events)
			}
		})
	}
}

// contentAfterWatchList returns the content of an informer that has synced with a server of these events.
func contentAfterWatchList(t *testing.T, events string, fails bool,
	informerOf func(*testing.T, *rest.Config) cache.SharedIndexInformer) map[string]string {
	t.Helper()
	server := httptest.NewServer(eventServer(events, fails))
	defer server.Close()
	defer server.CloseClientConnections()
	i := informerOf(t, &rest.Config{Host: server.URL, QPS: -1})
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() { // ended by stop
		defer close(ended)
		i.Run(stop)
	}()
	defer func() { close(stop); <-ended }()
	if !cache.WaitForCacheSync(t.Context().Done(), i.HasSynced) {
		t.Fatal("timed out waiting for the sync")
	}
	return storedJSON(t, i.GetStore())
}

func clientGoInformer(t *testing.T, config *rest.Config) cache.SharedIndexInformer {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	return dynamicinformer.NewFilteredDynamicInformer(client, gadgets, "default", 0, cache.Indexers{},
		nil).Informer()
}

func crdcacheInformer(t *testing.T, config *rest.Config) cache.SharedIndexInformer {
	t.Helper()
	client, err := NewClient(config, nil)
	must(t, err)
	from := &Server{Client: client, Limiter: NewListPool(1).NewLimiter(1, time.Now),
		RestoreDetector: NewRestoreDetector()}
	target := Target{GVR: gadgets, Namespace: "default", Objects: packedObjects,
		Tweak: func(*metav1.ListOptions) {}}
	lw := from.ListWatch(target, discardReporter{}, NewPacer(false, false, NewRetrySignal()), nil)
	return informer.New(lw, informer.Options{Backoff: &wait.Backoff{Duration: time.Millisecond, Factor: 1}})
}
