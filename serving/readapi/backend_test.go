package readapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/serving/readapi"
)

// testBackend is a Backend with only the latest state and the changes that lead to it, like the cache of a
// cluster.
type testBackend struct {
	typ     readapi.Type
	reads   atomic.Int64 // number of objects that Range has yielded
	encoded atomic.Int64 // number of calls of AppendJSON
	mu      sync.Mutex
	version uint64
	objects []testObject
	changes []readapi.Change
	next    chan struct{} // closed at the next change
	ended   chan struct{}
	onRead  func() // called for each object that Range reads
}

type testObject struct {
	backend *testBackend
	key     string
	text    string
}

func newTestBackend(n int) *testBackend {
	c := &testBackend{version: 1000, next: make(chan struct{}), ended: make(chan struct{}), typ: readapi.Type{
		Group: "example.com", Namespaced: true, Custom: true, Names: crd.Names{Plural: "widgets",
			Kind: "Widget"}, Versions: []readapi.Version{{Name: "v1"}},
	}}
	for i := range n {
		name := fmt.Sprintf("w%06d", i)
		c.objects = append(c.objects, testObject{c, "default/" + name,
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"` + name +
				`","namespace":"default","resourceVersion":"7"}}`})
	}
	return c
}

func (c *testBackend) ServedTypes() ([]readapi.Type, uint64) { return []readapi.Type{c.typ}, 1 }
func (c *testBackend) Collection(gr schema.GroupResource) readapi.Collection {
	if gr != c.typ.GroupResource() {
		return nil
	}
	return c
}
func (c *testBackend) Type() readapi.Type     { return c.typ }
func (c *testBackend) Ended() <-chan struct{} { return c.ended }
func (c *testBackend) ResourceVersion() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}
func (c *testBackend) Get(key string) readapi.Object {
	for o := range c.Range(key, "") {
		if o.Key() == key {
			return o
		}
		break
	}
	return nil
}
func (c *testBackend) Snapshot(version uint64) readapi.Snapshot {
	if version != 0 && version != c.ResourceVersion() {
		return nil
	}
	return c
}
func (c *testBackend) Range(from, to string) iter.Seq[readapi.Object] {
	return func(yield func(readapi.Object) bool) {
		for _, o := range c.objects {
			if o.key < from || to != "" && o.key >= to {
				continue
			}
			c.reads.Add(1)
			if c.onRead != nil {
				c.onRead()
			}
			if !yield(o) {
				return
			}
		}
	}
}
func (c *testBackend) Count(from, to string) (n int) {
	for _, o := range c.objects {
		if o.key >= from && (to == "" || o.key < to) {
			n++
		}
	}
	return n
}
func (c *testBackend) Since(version uint64) readapi.Changes {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := readapi.Changes{Oldest: 1000, ResourceVersion: c.version, Next: c.next}
	for _, change := range c.changes {
		if change.ResourceVersion > version {
			out.List = append(out.List, change)
		}
	}
	return out
}

func (c *testBackend) change(o testObject, deleted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version += 10
	next := readapi.Change{ResourceVersion: c.version, Before: o, After: o}
	if deleted {
		next.After = nil
	}
	c.changes = append(c.changes, next)
	close(c.next)
	c.next = make(chan struct{})
}

func (o testObject) Key() string           { return o.key }
func (o testObject) Version() string       { return "v1" }
func (o testObject) Labels() labels.Labels { return labels.Set{} }
func (o testObject) JSON() ([]byte, error) { return []byte(o.text), nil }
func (o testObject) AppendJSON(dst []byte, _ string) ([]byte, error) {
	o.backend.encoded.Add(1)
	return append(dst, o.text...), nil
}

// TestBackend verifies that a handler serves a custom Backend with the backend's resource versions.
func TestBackend(t *testing.T) {
	c := newTestBackend(3)
	h := readapi.NewHandler(c, readapi.HandlerOptions{})
	list := get(h, widgetsPath).Decoded(t)
	if version, _ := list.Object["metadata"].(map[string]any)["resourceVersion"].(string); version != "1000" {
		t.Errorf("the resource version of the list = %q, want 1000", version)
	}
	if a := get(h, inDefaultPath+"/w000001"); a.Code != http.StatusOK ||
		!strings.Contains(a.Body, `"w000001"`) {
		t.Errorf("GET of w000001 = %+v, want the object", a)
	}
	if a := get(h, widgetsPath+
		"?resourceVersion=990&resourceVersionMatch=Exact"); a.Code != http.StatusGone {
		t.Errorf("exact list of an older state = %+v, want 410", a)
	}
	if a := get(h, "/apis/example.com/v1"); !strings.Contains(a.Body, `"widgets"`) {
		t.Errorf("discovery = %+v, want widgets", a)
	}
	if a := get(h, "/apis/example.com/v1/gadgets"); a.Code != http.StatusNotFound ||
		a.Body != "404 page not found" {
		t.Errorf("list of another type = %+v, want 404", a)
	}
}

// TestPageReadsOnlyPage verifies that a page reads only its own objects, and reading stops when the client
// disconnects.
func TestPageReadsOnlyPage(t *testing.T) {
	c := newTestBackend(5000)
	h := readapi.NewHandler(c, readapi.HandlerOptions{})
	page := get(h, widgetsPath+"?limit=1")
	if n := c.reads.Load(); n > 2 || !strings.Contains(page.Body, `"remainingItemCount":4999`) {
		t.Errorf("%d objects were read for a page with one object, want at most 2", n)
	}
	c.reads.Store(0)
	ctx, disconnect := context.WithCancel(t.Context())
	c.onRead = disconnect
	for _, path := range []string{widgetsPath + "?labelSelector=a%3Db",
		widgetsPath + "?labelSelector=a%3Db&watch=1"} {
		c.reads.Store(0)
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
		if n := c.reads.Load(); n > 2*readapi.CheckEvery {
			t.Errorf("%s: %d objects were read for a disconnected client, want at most two checks", path, n)
		}
	}
}

// TestEventsAreEncodedOnce verifies that each event is encoded once for all watches.
func TestEventsAreEncodedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const watches = 20
		c := newTestBackend(1)
		transport := readapi.NewTransport(readapi.NewHandler(c, readapi.HandlerOptions{}))
		var decoders [watches]*json.Decoder
		for i := range watches {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x"+widgetsPath+
				"?watch=1&resourceVersion=1000", nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			decoders[i] = json.NewDecoder(response.Body)
		}
		synctest.Wait()
		c.change(c.objects[0], false)
		c.change(c.objects[0], true)
		for _, decoder := range decoders {
			for _, want := range []string{"MODIFIED 7", "DELETED 1020"} {
				var event struct {
					Type   string
					Object struct {
						Metadata struct{ ResourceVersion string }
					}
				}
				if err := decoder.Decode(&event); err != nil {
					t.Fatal(err)
				}
				if got := event.Type + " " + event.Object.Metadata.ResourceVersion; got != want {
					t.Fatalf("the next event = %s, want %s", got, want)
				}
			}
		}
		if n := c.encoded.Load(); n != 1 { // a deletion is encoded from JSON instead
			t.Errorf("%d objects were encoded for %d watches, want 1", n, watches)
		}
	})
}

// TestStalledClientIsCut verifies that if the client does not read, a watch ends at its timeout and a list
// after WriteTimeout.
func TestStalledClientIsCut(t *testing.T) {
	for name, path := range map[string]string{
		"initial objects": widgetsPath + "?watch=1&timeoutSeconds=30", "changes": widgetsPath +
			"?watch=1&resourceVersion=1000&timeoutSeconds=30",
		"a list": widgetsPath,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newTestBackend(5000)
				handlerReturned := make(chan struct{})
				h := readapi.NewHandler(c, readapi.HandlerOptions{})
				transport := readapi.NewTransport(http.HandlerFunc(func(w http.ResponseWriter,
					r *http.Request) {
					defer close(handlerReturned)
					h.ServeHTTP(w, r)
				}))
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x"+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				response, err := transport.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				c.change(c.objects[0], false)
				<-handlerReturned // otherwise synctest reports a deadlock
				if _, err := io.ReadAll(response.Body); err == nil {
					t.Error("reading a truncated response returned no error")
				}
				_ = response.Body.Close()
			})
		})
	}
}

// deadlineRecorder is a response that records the last write deadline.
type deadlineRecorder struct {
	*httptest.ResponseRecorder

	lock         sync.Mutex
	lastDeadline time.Time
	written      int
}

// SetWriteDeadline is called by http.ResponseController.
func (d *deadlineRecorder) SetWriteDeadline(deadline time.Time) error {
	d.lock.Lock()
	defer d.lock.Unlock()
	d.lastDeadline = deadline
	return nil
}

func (d *deadlineRecorder) Write(p []byte) (int, error) {
	d.lock.Lock()
	defer d.lock.Unlock()
	d.written += len(p)
	return d.ResponseRecorder.Write(p)
}

// recorded returns the number of written bytes, and the last deadline.
func (d *deadlineRecorder) recorded() (int, time.Time) {
	d.lock.Lock()
	defer d.lock.Unlock()
	return d.written, d.lastDeadline
}

// TestIdleWatchHasNoWriteDeadline verifies that the write deadline of an idle watch is not before its end,
// because HTTP/2 closes a stream at that deadline even if nothing is written.
func TestIdleWatchHasNoWriteDeadline(t *testing.T) {
	for name, query := range map[string]string{"initial objects": "watch=1",
		"changes": "watch=1&resourceVersion=1000"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, w := newTestBackend(10), &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet,
					widgetsPath+"?timeoutSeconds=3600&"+query, nil)
				go readapi.NewHandler(c, readapi.HandlerOptions{}).ServeHTTP(w,
					r) // ends with the watch
				synctest.Wait()
				c.change(c.objects[0], false)
				synctest.Wait()
				written, deadline := w.recorded()
				if left := time.Until(deadline); written == 0 || left < time.Hour {
					t.Errorf("after %d bytes, the write deadline of an idle watch is in %v, want at least an hour", written, left)
				}
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

// TestHugeResourceVersion verifies that lists continue after an object with the largest resource version.
func TestHugeResourceVersion(t *testing.T) {
	s := newWidgets(t, apiserver.StorageOptions{})
	u := testkit.Parse(t, testkit.Widget("default", "huge", "red"))
	u.SetResourceVersion("9223372036854775807")
	if _, err := s.Restore(u); err != nil {
		t.Fatal(err)
	}
	apply(t, s, testkit.Widget("default", "later", "red"))
	h := handlerOf(s)
	first := get(h, widgetsPath+"?limit=2")
	token := first.Decoded(t).Object["metadata"].(map[string]any)["continue"]
	if a := get(h, widgetsPath+"?limit=10&continue="+fmt.Sprint(token)); a.Code != http.StatusOK ||
		len(first.Keys(t))+len(a.Keys(t)) != 6 {
		t.Errorf("the pages are %+v and %+v, want 6 objects in total", first, a)
	}
}

// TestLongSelector verifies that a selector that is expensive to evaluate is rejected.
func TestLongSelector(t *testing.T) {
	h := handlerOf(newWidgets(t, apiserver.StorageOptions{}))
	for _, name := range []string{"labelSelector", "fieldSelector"} {
		long := strings.TrimSuffix(strings.Repeat("metadata.name!%3Dx,", readapi.MaxSelector/10), ",")
		if a := get(h, widgetsPath+"?"+name+"="+long); a.Code != http.StatusBadRequest ||
			!strings.Contains(a.Body, name+" has") {
			t.Errorf("long %s = %d %.200s, want 400", name, a.Code, a.Body)
		}
	}
}

// TestHostOfAPIRoot verifies that /api names the host of the current request, also after requests to another
// host.
func TestHostOfAPIRoot(t *testing.T) {
	h := handlerOf(newWidgets(t, apiserver.StorageOptions{}))
	for _, host := range []string{"one.example.com", "two.example.com"} {
		r := httptest.NewRequest(http.MethodGet, "http://"+host+"/api", nil)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if !strings.Contains(w.Body.String(), host) {
			t.Errorf("GET /api of host %s = %s, want the host", host, w.Body)
		}
	}
}
