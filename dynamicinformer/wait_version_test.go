package dynamicinformer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// versionOf creates an object and returns its resource version.
func versionOf(t *testing.T, server *apitest.Server, o *unstructured.Unstructured) string {
	t.Helper()
	server.Create(t, widgets, o)
	created, err := server.Client(t).Resource(widgets).Namespace(o.GetNamespace()).Get(t.Context(),
		o.GetName(),
		metav1.GetOptions{})
	must(t, err)
	return created.GetResourceVersion()
}

type waiting struct {
	*testing.T
	result chan error
}

func startWait(t *testing.T, wait func(context.Context) error) *waiting {
	w := &waiting{t, make(chan error, 1)}
	go func() { w.result <- wait(t.Context()) }() // ends with the wait
	synctest.Wait()
	return w
}

func waitForVersion(t *testing.T, i *Informer, version string) *waiting {
	return startWait(t, func(ctx context.Context) error { return i.WaitForVersion(ctx, version) })
}

// expectRunning checks that the wait does not end within d.
func (w *waiting) expectRunning(step string, d time.Duration) {
	w.Helper()
	time.Sleep(d)
	synctest.Wait()
	select {
	case err := <-w.result:
		w.Errorf("%s: the wait has ended with %v", step, err)
		w.result <- err
	default:
	}
}

// expectEnd checks that the wait ends with want within some time.
func (w *waiting) expectEnd(step string, within time.Duration, want error) {
	w.Helper()
	select {
	case err := <-w.result:
		var notSynced *NotSyncedError
		if want == (errNotSynced{}) && errors.As(err, &notSynced) {
			return
		}
		if !errors.Is(err, want) {
			w.Errorf("%s: the wait ended with %v, want %v", step, err, want)
		}
	case <-time.After(within + 1): // 1 ns, so that a result has precedence
		w.Errorf("%s: the wait continues", step)
	}
}

// heldWatches is a transport that holds back the events of watches.
type heldWatches struct {
	http.RoundTripper
	mu   sync.Mutex
	gate chan struct{} // nil if events pass
	// drops, if set, drops events that contain it, except the bookmark after the initial events.
	drops string
}

func (h *heldWatches) hold() (release func()) {
	gate := make(chan struct{})
	h.mu.Lock()
	h.gate = gate
	h.mu.Unlock()
	return func() {
		h.mu.Lock()
		h.gate = nil
		h.mu.Unlock()
		close(gate)
	}
}

func (h *heldWatches) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := h.RoundTripper.RoundTrip(r)
	if err == nil && r.URL.Query().Get("watch") != "" {
		response.Body = &heldBody{Closer: response.Body, lines: bufio.NewReader(response.Body), held: h,
			closed: make(chan struct{})}
	}
	return response, err
}

type heldBody struct {
	io.Closer
	lines  *bufio.Reader
	held   *heldWatches
	once   sync.Once
	closed chan struct{}
	line   []byte
}

func (b *heldBody) Read(data []byte) (int, error) {
	for len(b.line) == 0 {
		line, err := b.lines.ReadBytes('\n')
		if len(line) == 0 {
			return 0, err
		}
		b.held.mu.Lock()
		gate, drops := b.held.gate, b.held.drops
		b.held.mu.Unlock()
		if gate != nil {
			select {
			case <-gate:
			case <-b.closed:
				return 0, io.ErrUnexpectedEOF
			}
		}
		if drops == "" || !bytes.Contains(line, []byte(drops)) || bytes.Contains(line, []byte("initial-events-end")) {
			b.line = line
		}
	}
	n := copy(data, b.line)
	b.line = b.line[n:]
	return n, nil
}

func (b *heldBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Closer.Close()
}

// withHeldWatches runs a test with a factory that can hold back watches.
func withHeldWatches(t *testing.T, options Options,
	test func(*testing.T, *apitest.Server, *Factory, *heldWatches)) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		held := &heldWatches{RoundTripper: server.HTTPClient(t).Transport}
		options.Config, options.Logger = server.Config(), &discardLog
		options.HTTPClient = &http.Client{Transport: held}
		f, err := New(options)
		must(t, err)
		defer func() {
			if err := f.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		test(t, server, f, held)
	})
}

func probes(server *apitest.Server) int {
	return len(slices.DeleteFunc(server.Requests(), func(r string) bool {
		return !strings.Contains(r, "limit=1&") &&
			!strings.HasSuffix(r, "limit=1")
	}))
}

// withAndWithoutStorage runs a test like withHeldWatches, with a cache that stores objects, and with one that
// has a memory budget and stores none.
func withAndWithoutStorage(t *testing.T, test func(*testing.T, *apitest.Server, *Factory, *heldWatches)) {
	withHeldWatches(t, Options{}, test)
	withHeldWatches(t, Options{MemoryBudget: 1, Defaults: ResourceOptions{Storage: storageNone}}, test)
}

// TestWaitForVersion verifies that a wait ends when the event has arrived and not earlier, however late the
// event is. A probe does not end it.
func TestWaitForVersion(t *testing.T) {
	withAndWithoutStorage(t, func(t *testing.T, server *apitest.Server, f *Factory, held *heldWatches) {
		i := mustInformer(t, f, widgets)
		start(t, f)
		version := versionOf(t, server, widget("web", "a"))
		waitForVersion(t, i, version).expectEnd("an event", 0, nil)
		if err := f.WaitForVersion(t.Context(), widgets, version); err != nil {
			t.Error(err)
		}
		if n := probes(server); n != 0 {
			t.Errorf("%d probes for an event that arrived in time, want 0", n)
		}
		release := held.hold()
		version = versionOf(t, server, widget("web", "b"))
		late := waitForVersion(t, i, version)
		late.expectRunning("events are held back", 5*time.Second)
		if keys := i.GetStore().ListKeys(); len(keys) != 1 {
			t.Fatalf("the cache has the keys %v, want 1", keys)
		}
		release()
		late.expectEnd("events go on", time.Minute, nil)
		if keys := i.GetStore().ListKeys(); len(keys) != 2 {
			t.Errorf("the cache has the keys %v, want 2", keys)
		}
	})
}

// TestWaitForVersionOfOtherObjects verifies that a wait ends although no event follows for objects that the
// informer does not select. All waiters share one probe, and the type is not listed.
func TestWaitForVersionOfOtherObjects(t *testing.T) {
	for name, options := range map[string]ResourceOptions{
		"selector":        {LabelSelector: labels.SelectorFromSet(labels.Set{"app": "a"})},
		"namespace":       {Namespaces: InNamespaces("one")},
		"namespaces":      {Namespaces: InNamespaces("one", "two")},
		"pattern":         {Namespaces: MatchingNamespaces([]string{"o*"}, nil)},
		"matches nothing": {LabelSelector: labels.Nothing()},
		"shard":           {Shard: NewShard(sharding.ByNamespace)},
		"no shard yet":    {Shard: NewShard(sharding.ByNamespace)},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "shard" {
				for _, r := range fourShards {
					if !r.Contains(sharding.Hash("web")) {
						options.Shard.SetRanges(r)
					}
				}
			}
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				f := newVirtualFactory(t, server, Options{Defaults: options})
				createNamespaces(t, server, "one", "two", "web")
				i := mustInformer(t, f, widgets)
				start(t, f)
				lists := count(server, "list ") + count(server, "watch-list ")
				version := versionOf(t, server, widget("web", "other"))
				server.Create(t, gadgets, gadget("web", "later"))
				var all []*waiting
				for range 5 {
					all = append(all, waitForVersion(t, i, version))
				}
				for _, w := range all {
					w.expectEnd("an object that is not selected", 4*time.Second, nil)
				}
				selectsNothing := name == "matches nothing" || name == "no shard yet"
				if n := probes(server); n > 1 || n == 0 && !selectsNothing && name != "pattern" {
					t.Errorf("%d probes, want at most 1", n)
				}
				after := count(server, "list ") + count(server, "watch-list ")
				if n := after - lists - probes(server); n != 0 {
					t.Errorf("%d lists, want 0: %q", n, server.Requests())
				}
			})
		})
	}
}

// TestWaitForVersionOnIdleServer verifies that the type is listed if the server, like a kube-apiserver, sends
// no bookmark before the next write.
func TestWaitForVersionOnIdleServer(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		f := newVirtualFactory(t, server, Options{Defaults: ResourceOptions{Namespaces: InNamespaces("one")}})
		i := mustInformer(t, f, widgets)
		start(t, f)
		lists := count(server, "list ") + count(server, "watch-list ")
		w := waitForVersion(t, i, versionOf(t, server, widget("two", "a")))
		w.expectRunning("nothing is written", 5*time.Second)
		w.expectEnd("a list", 5*time.Second, nil)
		if n := count(server, "list ") + count(server, "watch-list ") - lists - probes(server); n != 1 {
			t.Errorf("%d lists, want 1", n)
		}
	})
}

// TestWaitForVersionWithoutBookmarks verifies that the type is listed if no bookmark comes.
func TestWaitForVersionWithoutBookmarks(t *testing.T) {
	options := Options{Defaults: ResourceOptions{Namespaces: InNamespaces("one")}}
	withHeldWatches(t, options, func(t *testing.T, server *apitest.Server, f *Factory, held *heldWatches) {
		held.drops = "BOOKMARK"
		i := mustInformer(t, f, widgets)
		start(t, f)
		w := waitForVersion(t, i, versionOf(t, server, widget("two", "b")))
		w.expectRunning("the watch shows nothing", 5*time.Second)
		w.expectEnd("a list follows", 30*time.Second, nil)
	})
}

// TestWaitForOpaqueVersion verifies that versions that are not numbers cannot be awaited.
func TestWaitForOpaqueVersion(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		f := newVirtualFactory(t, server, Options{})
		i := mustInformer(t, f, widgets)
		start(t, f)
		for _, version := range []string{"", "0", "a1", "01", "-1", "1.5"} {
			if err := i.WaitForVersion(t.Context(), version); !errors.Is(err, ErrOpaqueVersion) {
				t.Errorf("WaitForVersion(%q) = %v, want ErrOpaqueVersion", version, err)
			}
		}
	})
}

// TestWaitForLostVersion verifies that a version that the server has not reached ends the wait, at once or
// when the server is restored from a backup.
func TestWaitForLostVersion(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		f := newVirtualFactory(t, server, Options{Defaults: ResourceOptions{Namespaces: InNamespaces("one")}})
		i := mustInformer(t, f, widgets)
		start(t, f)
		waitForVersion(t, i, "1000000000000").expectEnd("a version of another server", time.Second, ErrVersionLost)

		restore := server.Backup(t)
		var version string
		for n := range 10 {
			version = versionOf(t, server, widget("two", fmt.Sprint(n)))
		}
		server.AddFaults(fault(widgetsPath, "", http.StatusServiceUnavailable),
			fault("/apis/example.com/v1/namespaces/one/widgets", "", http.StatusServiceUnavailable))
		server.CloseClientConnections()
		w := waitForVersion(t, i, version)
		w.expectRunning("the server is down", time.Minute)
		restore() // restores the server without faults
		w.expectEnd("a restored server", 2*time.Minute, ErrVersionLost)
		version = versionOf(t, server, widget("two", "new"))
		waitForVersion(t, i, version).expectEnd("a version of the restored server", time.Minute, nil)
	})
}

// TestWaitForVersionGivesUp verifies that the wait ends when the informer stops, the type is deleted, or the
// context ends.
func TestWaitForVersionGivesUp(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		types := &scriptedSource{}
		f := newVirtualFactory(t, server, Options{Types: types})
		types.set(nil)
		types.listener.SetComplete()
		i := mustInformer(t, f, widgets)
		ctx, cancel := context.WithCancelCause(t.Context())
		unstarted := startWait(t, func(context.Context) error { return i.WaitForVersion(ctx, "1") })
		cancel(errors.New("enough"))
		unstarted.expectEnd("an informer that was not started", 0, context.Cause(ctx))
		start(t, f)
		deleted := waitForVersion(t, i, "100")
		types.listener.RemoveType(widgets.GroupResource(), true)
		deleted.expectEnd("a deleted type", time.Second, errNotSynced{})
		types.set(nil)
		version := versionOf(t, server, widget("web", "a"))
		waitForVersion(t, i, version).expectEnd("a type that returns", time.Minute, nil)
		later := waitForVersion(t, i, version+"0")
		if err := f.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		later.expectEnd("after the shutdown", 0, ErrStopped)
		waitForVersion(t, i, version).expectEnd("a stopped informer", 0, ErrStopped)
	})
}

// errNotSynced, passed to expectEnd, matches any *NotSyncedError.
type errNotSynced struct{}

func (errNotSynced) Error() string { return "a NotSyncedError" }

// TestAwaitDeletion verifies that a deletion is awaited until the cache has applied it, or until a probe has
// shown that there is no event to wait for.
func TestAwaitDeletion(t *testing.T) {
	withAndWithoutStorage(t, func(t *testing.T, server *apitest.Server, f *Factory, held *heldWatches) {
		finalized := widget("web", "c")
		finalized.SetFinalizers([]string{"example.com/finalizer"})
		server.Create(t, widgets, widget("web", "a"), widget("web", "b"), finalized)
		i := mustInformer(t, f, widgets)
		start(t, f)
		name := func(name string) cache.ObjectName { return cache.ObjectName{Namespace: "web", Name: name} }

		wait := i.AwaitDeletion(name("a"), "")
		server.Delete(t, widgets, "web", "a")
		synctest.Wait()
		startWait(t, wait).expectEnd("a deletion that was delivered", 0, nil)
		wait = i.AwaitDeletion(name("c"), "")
		server.Delete(t, widgets, "web", "c")
		synctest.Wait()
		startWait(t, wait).expectEnd("an object with a finalizer", 5*time.Second, nil)

		wait = i.AwaitDeletion(name("b"), "")
		release := held.hold()
		server.Delete(t, widgets, "web", "b")
		late := startWait(t, wait)
		late.expectRunning("events are held back", 5*time.Second)
		release()
		late.expectEnd("events go on", time.Minute, nil)
		if n := len(i.GetStore().ListKeys()); n != 1 {
			t.Errorf("the cache has %d objects, want 1", n)
		}

		held.hold() // a new object that the cache does not have yet
		server.Create(t, widgets, widget("web", "new"))
		wait = i.AwaitDeletion(name("new"), "")
		server.Delete(t, widgets, "web", "new")
		unknown := startWait(t, wait)
		unknown.expectRunning("its creation may follow", 5*time.Second)
	})
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		f := newVirtualFactory(t, server, Options{Defaults: ResourceOptions{Namespaces: InNamespaces("one")}})
		server.Create(t, widgets, widget("two", "b"))
		i := mustInformer(t, f, widgets)
		start(t, f)
		wait := i.AwaitDeletion(cache.ObjectName{Namespace: "two", Name: "b"}, "uid")
		server.Delete(t, widgets, "two", "b")
		startWait(t, wait).expectEnd("an object that is not selected", 10*time.Second, nil)
	})
}

// TestWaitForVersionInNamespaces verifies that if each namespace has its own watch, the wait ends when all
// watches have reached the version.
func TestWaitForVersionInNamespaces(t *testing.T) {
	options := Options{Defaults: ResourceOptions{Namespaces: InNamespaces("one", "two")}}
	withHeldWatches(t, options, func(t *testing.T, server *apitest.Server, f *Factory, held *heldWatches) {
		i := mustInformer(t, f, widgets)
		start(t, f)
		release := held.hold()
		versionOf(t, server, widget("two", "b"))
		version := versionOf(t, server, widget("one", "a"))
		w := waitForVersion(t, i, version)
		w.expectRunning("both are held back", 5*time.Second)
		release()
		w.expectEnd("both go on", 10*time.Second, nil)
		if keys := i.GetStore().ListKeys(); len(keys) != 2 {
			t.Errorf("the cache has the keys %v, want 2", keys)
		}
	})
}
