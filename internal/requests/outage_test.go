package requests

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// clientGoGVR is the type that a reflector reads with client-go's requests. Another one reads gadgets with
// this package's requests.
var clientGoGVR = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gizmos"}

func pathOf(gvr schema.GroupVersionResource) string {
	return "/apis/" + strings.Join([]string{gvr.Group, gvr.Version, gvr.Resource}, "/")
}

// clientComparison runs a reflector of one type with client-go's dynamic client and backoff, and a reflector
// of another type with this package.
type clientComparison struct {
	*testing.T
	server  *apitest.Server
	stores  map[schema.GroupVersionResource]cache.Store
	reports *reportCounter

	limiter *Limiter
	// config and http reach the server.
	config *rest.Config
	http   *http.Client
}

// withVirtualClock runs a test with a virtual clock.
func withVirtualClock(t *testing.T, test func(*clientComparison)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newClientComparison(t)) })
}

func newClientComparison(t *testing.T) *clientComparison {
	server := apitest.NewInMemory(t,
		apitest.Type{GVR: gadgets, Kind: "Gadget", Namespaced: true}, apitest.Type{GVR: clientGoGVR, Kind: "Gizmo",
			Namespaced: true})
	r := &clientComparison{
		T: t, server: server, stores: map[schema.GroupVersionResource]cache.Store{},
		reports: &reportCounter{},
		limiter: NewListPool(1).NewLimiter(1, time.Now), config: server.Config(), http: server.HTTPClient(t),
	}
	r.create("a")
	return r
}

// create creates an object of each type.
func (r *clientComparison) create(name string) {
	for gvr, kind := range map[schema.GroupVersionResource]string{gadgets: "Gadget", clientGoGVR: "Gizmo"} {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": kind}}
		u.SetNamespace("default")
		u.SetName(name)
		r.server.Create(r.T, gvr, u)
	}
}

func (r *clientComparison) start(typeKnown bool) {
	stock, err := dynamic.NewForConfigAndClient(r.config, r.http)
	must(r, err)
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	r.stores[clientGoGVR] = store
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return decodedResource{stock.Resource(clientGoGVR)}.List(ctx, options, true)
		},
		WatchFuncWithContext: stock.Resource(clientGoGVR).Watch,
	}, stock)
	r.runInBackground(cache.NewReflectorWithOptions(lw, nil, store,
		cache.ReflectorOptions{Name: clientGoGVR.Resource}).RunWithContext)
	r.startOurs(typeKnown)
}

// startOurs starts this package's reflector only.
func (r *clientComparison) startOurs(typeKnown bool) {
	own, err := NewClient(r.config, r.http)
	must(r, err)
	from := &Server{Client: own, Limiter: r.limiter, RestoreDetector: NewRestoreDetector()}
	target := Target{GVR: gadgets, Objects: packedObjects, Tweak: func(*metav1.ListOptions) {}}
	lw := from.ListWatch(target, r.reports, NewPacer(typeKnown, false, NewRetrySignal()), nil)
	backoff := &wait.Backoff{Duration: time.Millisecond, Factor: 1}
	i := informer.New(lw, informer.Options{Backoff: backoff})
	r.stores[gadgets] = i.GetStore()
	r.runInBackground(i.RunWithContext)
}

// runInBackground calls forever on a goroutine, and ends its context at the end of the test.
func (r *clientComparison) runInBackground(forever func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() { // ended by the end of the test
		defer close(ran)
		forever(ctx)
	}()
	r.Cleanup(func() {
		cancel()
		<-ran
	})
}

// fault makes the server answer requests of both types with a status, for some verbs.
func (r *clientComparison) fault(status int, verbs ...string) {
	for _, verb := range verbs {
		r.addFault(apitest.Fault{Verb: verb, Status: status})
	}
}

func (r *clientComparison) addFault(f apitest.Fault) {
	for _, gvr := range []schema.GroupVersionResource{gadgets, clientGoGVR} {
		f.Path = pathOf(gvr)
		r.server.AddFaults(f)
	}
}

// count returns the number of requests of a type with one of some verbs, or a prefix of one.
func (r *clientComparison) count(gvr schema.GroupVersionResource, verbs ...string) (n int) {
	for _, request := range r.server.Requests() {
		verb, uri, _ := strings.Cut(request, " ")
		for _, v := range verbs {
			if strings.HasSuffix(uri, "?limit=1") {
				verb = "check" // of the server's version
			}
			if v == verb && strings.HasPrefix(uri, pathOf(gvr)+"?") {
				n++
			}
		}
	}
	return n
}

// awaitSync returns the time until the object of a type is cached.
func (r *clientComparison) awaitSync(gvr schema.GroupVersionResource) time.Duration {
	begun := time.Now()
	for len(r.stores[gvr].ListKeys()) == 0 && time.Since(begun) < time.Hour {
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(begun)
}

type reportCounter struct {
	mu       sync.Mutex
	reported []status.Reason
	lists    int
}

func (*reportCounter) RequestStarted(Verb)          {}
func (*reportCounter) Throttled(Verb)               {}
func (*reportCounter) RecordContact(bool)           {}
func (*reportCounter) RelistRequested()             {}
func (*reportCounter) Remark(status.Reason, string) {}
func (*reportCounter) WatchOpened()                 {}
func (*reportCounter) NoContact()                   {}

func (h *reportCounter) RequestEnded(_ Verb, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if reason := ReasonOf(err); reason != status.ReasonNone {
		h.reported = append(h.reported, reason)
	}
}

func (h *reportCounter) ListCompleted(time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lists++
}

func (h *reportCounter) failures() []status.Reason {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.reported)
}

// listCount returns the number of lists reported so far.
func (h *reportCounter) listCount() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lists
}

// TestNoMoreListsThanClientGo verifies that failing watches do not cause more lists than with client-go,
// although each failure causes a list.
func TestNoMoreListsThanClientGo(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		known  bool
	}{
		"500": {status: 500}, "503": {status: 503}, "404": {status: 404}, "404 of a known type": {status: 404,
			known: true},
		"403": {status: 403}, "401": {status: 401},
	} {
		t.Run(name, func(t *testing.T) {
			withVirtualClock(t, func(r *clientComparison) {
				r.fault(tt.status, "watch", "watch-list")
				r.start(tt.known)
				for _, after := range []time.Duration{10 * time.Minute, 20 * time.Minute} {
					time.Sleep(after)
					ours, others := r.count(gadgets, "list"), r.count(clientGoGVR, "list")
					t.Logf("after %v more: %d lists, client-go %d", after, ours, others)
					if ours > others || ours < 2 {
						t.Errorf("%d lists, want 2 to as many as client-go, %d", ours, others)
					}
				}
				if r.reports.listCount() != r.count(gadgets, "list") {
					t.Errorf("%d lists were reported, want %d", r.reports.listCount(), r.count(gadgets,
						"list"))
				}
				// An established watch ends the outage, so that the next outage begins with short pauses.
				r.server.Repair()
				time.Sleep(backoffs[stageForbidden].longest + establishedAfter)
				before := r.count(gadgets, "list")
				r.fault(tt.status, "watch", "watch-list")
				r.server.CloseClientConnections()
				time.Sleep(10 * time.Second)
				if got := r.count(gadgets, "list") - before; got < 2 {
					t.Errorf("%d lists in the first seconds of the next outage, want at least 2", got)
				}
			})
		})
	}
}

// TestGrantedAfterTheStart grants a permission shortly after the first request, as when a program is
// installed with its role. The type must sync about as soon as with client-go.
func TestGrantedAfterTheStart(t *testing.T) {
	withVirtualClock(t, func(r *clientComparison) {
		r.fault(403, "list", "watch", "watch-list")
		r.start(false)
		time.Sleep(3 * time.Second)
		r.server.Repair()
		// The third pause of client-go, which may just have begun, is at most 6.4 s.
		if ours, others := r.awaitSync(gadgets), r.awaitSync(clientGoGVR); ours > 6500*time.Millisecond {
			t.Errorf("synced %v after the permission was granted, client-go %v later", ours, others)
		}
		if got := r.reports.failures(); len(got) < 2 || got[0] != status.ReasonForbidden {
			t.Errorf("reported the failures %q, want Forbidden first", got)
		}
	})
}

// TestRecovery makes each verb fail with each status, and checks the recovery.
func TestRecovery(t *testing.T) {
	for _, status := range []int{401, 403, 404, 429, 500, 503} {
		withVirtualClock(t, func(r *clientComparison) {
			r.fault(status, "list", "watch", "watch-list")
			r.start(false)
			time.Sleep(time.Minute)
			r.server.Repair()
			if ours, others := r.awaitSync(gadgets), r.awaitSync(clientGoGVR); ours > time.Minute {
				t.Errorf("after %d: synced after %v, client-go %v later", status, ours, others)
			}
			if held, waiting, _ := r.limiter.Load(); held != 0 || waiting != 0 {
				t.Errorf("after %d: %d slots are held and %d lists wait, want 0", status, held, waiting)
			}
		})
	}
}

// TestRelistsAreNotOlderThanWatch checks that watched objects do not vanish after a list from a
// lagging server.
func TestRelistsAreNotOlderThanWatch(t *testing.T) {
	withVirtualClock(t, func(r *clientComparison) {
		r.startOurs(false)
		r.awaitSync(gadgets)
		time.Sleep(time.Second)
		r.create("b")
		time.Sleep(time.Second)
		listed := r.stores[gadgets].List()
		newest := 0
		for _, obj := range listed {
			o, err := meta.Accessor(obj)
			must(r, err)
			version, err := strconv.Atoi(o.GetResourceVersion())
			must(r, err)
			newest = max(newest, version)
		}
		for _, verb := range []string{"watch-list", "list"} {
			before := len(r.server.Requests())
			if verb == "list" {
				r.fault(http.StatusBadRequest, "watch-list")
			}
			r.fault(http.StatusGone, "watch")
			r.server.CloseClientConnections()
			time.Sleep(time.Minute)
			requests := 0
			for _, request := range r.server.Requests()[before:] {
				got, uri, _ := strings.Cut(request, " ")
				u, err := url.Parse(uri)
				if got != verb || err != nil || u.RawQuery == "limit=1" {
					continue
				}
				requests++
				if from, _ := strconv.Atoi(u.Query().Get("resourceVersion")); from < newest {
					r.Errorf("the request %q is for an older version than the received %d", request, newest)
				}
			}
			if requests == 0 {
				r.Errorf("no %s was sent", verb)
			}
		}
	})
}

// TestSingleTypeBacksOff checks that a type backs off if its requests fail while the server responds to
// others.
func TestSingleTypeBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPacer(false, false, NewRetrySignal())
		requests, begun := 0, time.Now()
		for time.Since(begun) < 10*time.Minute {
			p.recordFailure(errRefused, 0)
			time.AfterFunc(100*time.Millisecond, p.outage.end) // a response to another type
			measurePause(t, p)
			requests++
		}
		if requests > 50 {
			t.Errorf("%d requests in ten minutes, want at most 50", requests)
		}
	})
}

// TestListsWithoutAnswer checks that lists without a response are aborted and reported, and that the type is
// listed when the server answers.
func TestListsWithoutAnswer(t *testing.T) {
	withVirtualClock(t, func(r *clientComparison) {
		r.addFault(apitest.Fault{Verb: "watch-list", Status: 400})
		r.addFault(apitest.Fault{Verb: "list"})
		r.startOurs(false)
		time.Sleep(listHeaderTimeout + time.Second)
		if failures := r.reports.failures(); !slices.Contains(failures, status.ReasonNoAnswer) {
			t.Errorf("after %v, reported the failures %q, want NoAnswer", listHeaderTimeout, failures)
		}
		r.server.Repair()
		if elapsed := r.awaitSync(gadgets); elapsed > 2*listHeaderTimeout {
			t.Errorf("synced after %v, want two header timeouts at most", elapsed)
		}
	})
}

// TestSilentWatchesEnd verifies that the server ends a watch at its timeout. A watch that is silent for
// longer is dead.
func TestSilentWatchesEnd(t *testing.T) {
	full := 5*time.Minute + silenceGrace
	for protocol, want := range map[int]time.Duration{1: silenceHTTP1, 2: full} {
		synctest.Test(t, func(t *testing.T) {
			body, server := io.Pipe()
			defer server.Close()
			silent := roundTrip(func(*http.Request) (*http.Response, error) {
				header := http.Header{"Content-Type": {"application/json"}}
				return &http.Response{StatusCode: 200, ProtoMajor: protocol, Header: header, Body: body}, nil
			})
			config := &rest.Config{Host: "http://example.com", QPS: -1}
			w := newInlineListWatch(t, config, &http.Client{Transport: silent}, packedObjects)
			seconds, begun := int64(300), time.Now()
			err := w.WatchInline(t.Context(), &metav1.ListOptions{ResourceVersion: "7",
				TimeoutSeconds: &seconds}, func(watch.Event) bool { return true })
			if err != nil {
				t.Error(err)
			}
			if took := time.Since(begun); took != want {
				t.Errorf("over HTTP/%d it ended after %v, want %v", protocol, took, want)
			}
		})
	}
}

// TestOutageTurns checks that all types together send at most two requests a second while the server cannot
// be reached. When one gets a response, all continue.
func TestOutageTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const types = 100
		shared := &sharedOutage{}
		var requests atomic.Int64
		var down atomic.Bool
		down.Store(true)
		var recovered sync.WaitGroup
		for range types {
			p := NewPacer(false, false, NewRetrySignal())
			p.outage = shared
			recovered.Go(func() { // ended by the end of the outage
				for p.awaitRound(t.Context()) == nil {
					requests.Add(1)
					if !down.Load() {
						p.record(requestOutcome{verb: VerbList})
						return
					}
					p.recordFailure(errRefused, 0)
				}
			})
		}
		time.Sleep(time.Minute)
		if n := requests.Load(); n > types+2*60+1 || n < types+60 {
			t.Errorf("%d requests of %d types in a minute, want at most two a second", n, types)
		}
		down.Store(false)
		begun := time.Now()
		recovered.Wait()
		if elapsed := time.Since(begun); elapsed > backoffs[stageConnection].longest {
			t.Errorf("all types recovered after %v, want the longest pause at most", elapsed)
		}
	})
}
