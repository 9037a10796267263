package requests

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/informer"
)

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
		if err != nil {
			t.Fatal(err)
		}
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
			got := contentAfterWatchList(t, events,
				fails, crdcacheInformer)
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
	if err != nil {
		t.Fatal(err)
	}
	return dynamicinformer.NewFilteredDynamicInformer(client, gadgets, "default", 0, cache.Indexers{},
		nil).Informer()
}

func crdcacheInformer(t *testing.T, config *rest.Config) cache.SharedIndexInformer {
	t.Helper()
	client, err := NewClient(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	from := &Server{Client: client, Limiter: NewListPool(1).NewLimiter(1, time.Now),
		RestoreDetector: NewRestoreDetector()}
	target := Target{GVR: gadgets, Namespace: "default", Objects: packedObjects,
		Tweak: func(*metav1.ListOptions) {}}
	lw := from.ListWatch(target, discardReporter{}, NewPacer(false, false, NewRetrySignal()), nil)
	return informer.New(lw, informer.Options{Backoff: &wait.Backoff{Duration: time.Millisecond, Factor: 1}})
}
