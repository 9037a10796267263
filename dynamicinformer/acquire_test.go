package dynamicinformer

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

func acquire(t *testing.T, f *Factory, gvr schema.GroupVersionResource, options ...ResourceOptions) *Handle {
	t.Helper()
	h, err := f.Acquire(gvr, options...)
	must(t, err)
	return h
}

func expectState(t *testing.T, step string, i *Informer, want status.State) {
	t.Helper()
	synctest.Wait()
	if s := i.Status(); s.State != want || i.IsStopped() != (want == status.Stopped) {
		t.Errorf("%s: the status is %+v, want %s", step, s, want)
	}
}

// TestAcquireAndRelease verifies that an informer runs while there are handles, lingers, and stops without
// deletions.
func TestAcquireAndRelease(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("web", "a"))
		f := newVirtualFactory(t, server, Options{})
		first := acquire(t, f, widgets)
		i := first.Informer()
		expectState(t, "before Start", i, status.Pending)
		start(t, f)
		expectState(t, "after Start", i, status.Synced)
		e := record(t, i)
		expectEvents(t, "a late handler", e, "add web/a")

		second := acquire(t, f, widgets)
		if second.Informer() != i {
			t.Error("the second handle has another informer than the first")
		}
		first.Release()
		first.Release()
		time.Sleep(time.Hour)
		expectState(t, "with one handle left", i, status.Synced)

		second.Release()
		time.Sleep(defaultLinger - time.Second)
		expectState(t, "lingering", i, status.Synced)
		third := acquire(t, f, widgets)
		time.Sleep(time.Hour)
		expectState(t, "acquired again in time", i, status.Synced)
		third.Release()
		time.Sleep(defaultLinger + time.Second)
		expectState(t, "after the last release", i, status.Stopped)
		expectEvents(t, "after the last release", e)
		if n := len(f.Status()); n != 0 {
			t.Errorf("%d informers remain after the releases, want 0", n)
		}

		fourth := acquire(t, f, widgets)
		if fourth.Informer() == i {
			t.Error("Acquire returned a stopped informer")
		}
		expectState(t, "another one runs at once", fourth.Informer(), status.Synced)
		for _, late := range []*Handle{first, second, third} {
			late.Release()
		}
		time.Sleep(time.Hour)
		expectState(t, "late releases are of the old one", fourth.Informer(), status.Synced)
		if got := count(server, "watch-list "+widgetsPath); got != 2 {
			t.Errorf("the type was listed %d times, want twice", got)
		}
	})
}

// TestLingerRestarts verifies that each release starts a new linger period.
func TestLingerRestarts(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		f := newVirtualFactory(t, server, Options{Linger: 10 * time.Second})
		start(t, f)
		h := acquire(t, f, widgets)
		i := h.Informer()
		h.Release()
		time.Sleep(6 * time.Second)
		acquire(t, f, widgets).Release()
		time.Sleep(6 * time.Second)
		expectState(t, "six seconds after the last release", i, status.Synced)
		time.Sleep(5 * time.Second)
		expectState(t, "eleven seconds after it", i, status.Stopped)
	})
}

// TestAcquireWhileInformerEnds verifies that after a second Start, Acquire uses its context, even while
// informers of the first Start are ending.
func TestAcquireWhileInformerEnds(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("web", "a"))
		busy := make(chan struct{})
		f := newVirtualFactory(t, server,
			Options{Defaults: ResourceOptions{Transform: func(obj any) (any, error) {
				<-busy
				return obj, nil
			}}})
		ctx, cancel := context.WithCancel(t.Context())
		must(t, f.Start(ctx))
		before := acquire(t, f, widgets)
		synctest.Wait()
		cancel()
		after := acquire(t, f, widgets)
		start(t, f)
		if after.Informer() == before.Informer() {
			t.Error("Acquire returned an informer whose context has ended")
		}
		close(busy)
		expectState(t, "that of the first Start", before.Informer(), status.Stopped)
		expectState(t, "that of the second", after.Informer(), status.Synced)
		before.Release()
		time.Sleep(time.Hour)
		expectState(t, "after the release of the other", after.Informer(), status.Synced)
	})
}

func TestReleaseWithoutLinger(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.AddFaults(unansweredRequests(gadgetsPath))
		f := newVirtualFactory(t, server, Options{Linger: -1})
		idle := acquire(t, f, widgets)
		idle.Release()
		expectState(t, "an informer that was never started", idle.Informer(), status.Stopped)
		start(t, f)

		// Waiters are notified.
		h := acquire(t, f, gadgets)
		waited := make(chan error, 2)
		go func() { // ended by the release
			err := f.WaitForSync(context.Background(), gadgets)
			var missing *NotSyncedError
			if !errors.As(err, &missing) || missing.NotSynced[0].State != status.Stopped {
				t.Errorf("WaitForSync() = %+v, want a NotSyncedError for a stopped informer", err)
			}
			waited <- err
		}()
		go func() { waited <- h.Informer().core.WaitForSync(context.Background()) }() // ended by the release
		synctest.Wait()
		h.Release()
		for range 2 {
			if err := <-waited; err == nil {
				t.Error("WaitForSync() of a stopped informer succeeded, want an error")
			}
		}
		expectState(t, "released", h.Informer(), status.Stopped)
	})
}

// TestReleaseInHandler verifies that a handler can release its own informer.
func TestReleaseInHandler(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("web", "a"))
		f := newVirtualFactory(t, server, Options{Linger: -1})
		h := acquire(t, f, widgets)
		released := make(chan struct{})
		if _, err := h.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
			h.Release()
			close(released)
		}}); err != nil {
			t.Fatal(err)
		}
		start(t, f)
		<-released
		expectState(t, "released from inside", h.Informer(), status.Stopped)
	})
}

// TestForResourceHolds verifies that a release does not stop an informer that ForResource has returned.
func TestForResourceHolds(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		f := newVirtualFactory(t, server, Options{Linger: -1})
		start(t, f)
		h := acquire(t, f, widgets)
		i := mustInformer(t, f, widgets)
		if i != h.Informer() {
			t.Error("ForResource returns another informer than Acquire")
		}
		h.Release()
		expectState(t, "held", i, status.Synced)
	})
}

// TestAcquireUnknownType verifies that the informer of a missing type is pending, and syncs when the type is
// created.
func TestAcquireUnknownType(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		types := &scriptedSource{}
		f := newVirtualFactory(t, server, Options{Types: types})
		types.listener.SetComplete()
		start(t, f)
		h := acquire(t, f, widgets)
		expectState(t, "absent", h.Informer(), status.Pending)
		types.set(nil)
		expectState(t, "installed", h.Informer(), status.Synced)
	})
}

// TestEqualOptionsShareInformers verifies that requests with equal options share an informer, and others have
// their own.
func TestEqualOptionsShareInformers(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		red := widget("web", "red")
		red.SetLabels(map[string]string{"color": "red"})
		server.Create(t, widgets, red, widget("web", "blue"), widget("db", "blue"))
		f := newVirtualFactory(t, server, Options{})
		start(t, f)
		reds := ResourceOptions{LabelSelector: labels.SelectorFromSet(labels.Set{"color": "red"})}
		all, some := acquire(t, f, widgets), acquire(t, f, widgets, reds)
		web := acquire(t, f, widgets, reds, ResourceOptions{Namespaces: InNamespaces("web")})
		same := acquire(t, f, widgets, ResourceOptions{LabelSelector: reds.LabelSelector,
			Namespaces: AllNamespaces()})
		if some.Informer() == all.Informer() || some.Informer() == web.Informer() ||
			same.Informer() != some.Informer() {
			t.Error("different options share an informer, or equal ones do not")
		}
		if mustInformer(t, f, widgets) != all.Informer() {
			t.Error("ForResource returned another informer than Acquire without options")
		}
		synctest.Wait()
		var descriptions []string
		statuses, err := waitForStatuses(context.Background(), f, widgets)
		for _, s := range statuses {
			descriptions = append(descriptions, s.Options)
		}
		if diff := cmp.Diff([]string{"", "labels: color=red", "namespaces: in web; labels: color=red"},
			descriptions); err != nil || diff != "" {
			t.Errorf("%v; the options (-want +got):\n%s", err, diff)
		}
		if got := keysOf(some.Informer()); !reflect.DeepEqual(got, []string{"web/red"}) ||
			len(keysOf(all.Informer())) != 3 {
			t.Errorf("the caches have the keys %v and %v, want 1 and 3 keys", got, keysOf(all.Informer()))
		}
	})
}

// TestEveryOptionIsPartOfTheKey verifies that all options are part of the key, except those that informers
// with different values can share.
func TestEveryOptionIsPartOfTheKey(t *testing.T) {
	shared := map[string]bool{"Resync": true, "PageSize": true, "MinWatchTimeout": true,
		"WatchBookmarks": true, "Verify": true, "Required": true, "Indexers": true,
		"Indexes": true, "Persist": true}
	for field := range reflect.TypeFor[ResourceOptions]().Fields() {
		var a, b ResourceOptions
		x, y := twoValues(t, field)
		reflect.ValueOf(&a).Elem().FieldByIndex(field.Index).Set(x)
		reflect.ValueOf(&b).Elem().FieldByIndex(field.Index).Set(y)
		if same := a.key() == b.key(); same != shared[field.Name] {
			t.Errorf("options that differ only in %s have equal keys: %v, want %v", field.Name, same,
				shared[field.Name])
		}
		if again := a; again.key() != a.key() {
			t.Errorf("equal options with %s have different keys", field.Name)
		}
	}
}

// TestClosuresDiffer verifies that closures of the same code with different variables are different
// functions.
func TestClosuresDiffer(t *testing.T) {
	adding := func(label string) cache.TransformFunc {
		return func(obj any) (any, error) { return label, nil }
	}
	a, b := ResourceOptions{Transform: adding("a")}, ResourceOptions{Transform: adding("b")}
	if a.key() == b.key() || a.key() != a.key() {
		t.Error("two different closures have equal keys")
	}
	if again := (ResourceOptions{Transform: a.Transform}); again.key() != a.key() {
		t.Error("equal functions have different keys")
	}
	if one, other := (ResourceOptions{}), (ResourceOptions{Storage: Storage{Mode: StoragePacked},
		Namespaces: AllNamespaces(), Versions: PinnedVersion()}); one.key() != other.key() {
		t.Error("explicit default values have another key than unset options")
	}
}

func TestAcquireFails(t *testing.T) {
	f := newFactory(t, newServer(t), Options{})
	for name, tt := range map[string]struct {
		gvr     schema.GroupVersionResource
		options ResourceOptions
		want    []string
	}{
		"no version": {schema.GroupVersionResource{Resource: "x"}, ResourceOptions{},
			[]string{"lacks a version"}},
		"several at once": {widgets, ResourceOptions{Namespaces: InNamespaces(""),
			Resync: new(time.Duration(-1))}, []string{"widgets.v1.example.com", "empty name",
			"Resync is"}},
		"no source of types": {widgets, ResourceOptions{Versions: PreferredVersion()},
			[]string{"requires Options.Types"}},
	} {
		h, err := f.Acquire(tt.gvr, tt.options)
		if err == nil || h != nil {
			t.Errorf("%s: Acquire() = %v, %v, want an error", name, h, err)
			continue
		}
		for _, part := range tt.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: the error %v does not contain %q", name, err, part)
			}
		}
	}
	h := acquire(t, f, widgets)
	must(t, f.Shutdown(t.Context()))
	h.Release()
	if _, err := f.Acquire(widgets); !errors.Is(err, ErrShutdown) {
		t.Errorf("after Shutdown, Acquire() = %v, want ErrShutdown", err)
	}
}

// TestAcquireReleaseChurn verifies that a thousand cycles of Acquire and Release leave neither goroutines nor
// memory behind.
func TestAcquireReleaseChurn(t *testing.T) {
	const cycles, warmUp = 1000, 200
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("web", "a"))
		f := newVirtualFactory(t, server, Options{Linger: -1})
		start(t, f)
		goroutines, heap := 0, uint64(0)
		measure := func() (int, uint64) {
			var m runtime.MemStats
			synctest.Wait()
			runtime.GC()
			runtime.ReadMemStats(&m)
			return runtime.NumGoroutine(), m.HeapAlloc
		}
		for n := range cycles {
			if n == warmUp {
				goroutines, heap = measure()
			}
			first, second := acquire(t, f, widgets), acquire(t, f, widgets)
			if _, err := first.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{}); err != nil {
				t.Fatal(err)
			}
			if n%4 == 0 {
				expectState(t, "acquired", first.Informer(), status.Synced)
			}
			first.Release()
			second.Release()
		}
		if nowGoroutines, nowHeap := measure(); nowGoroutines > goroutines || nowHeap > heap+4<<20 {
			t.Errorf("%d goroutines and %d bytes after %d cycles, want at most %d and %d as after %d",
				nowGoroutines, nowHeap, cycles, goroutines, heap, warmUp)
		}
		if remaining := f.Status(); len(remaining) != 0 {
			t.Errorf("informers remain: %+v", remaining)
		}
	})
}

// TestKeepHistoryOfSelectors verifies that only informers of all objects keep a history.
func TestKeepHistoryOfSelectors(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		f := newVirtualFactory(t, server, Options{})
		label, field := labels.SelectorFromSet(labels.Set{"a": "b"}), fields.OneTermEqualSelector("metadata.name", "a")
		for name, test := range map[string]struct {
			options ResourceOptions
			isKept  bool
		}{
			"no selector": {ResourceOptions{}, true},
			"empty selectors": {ResourceOptions{LabelSelector: labels.Everything(),
				FieldSelector: fields.Everything()}, true},
			"labels":           {ResourceOptions{LabelSelector: label}, false},
			"nothing":          {ResourceOptions{LabelSelector: labels.Nothing()}, false},
			"fields":           {ResourceOptions{FieldSelector: field}, false},
			"one alternative":  {ResourceOptions{AnyOf: []Selector{{Label: label}}}, false},
			"two alternatives": {ResourceOptions{AnyOf: []Selector{{Label: label}, {Field: field}}}, false},
			"tweak": {ResourceOptions{TweakListOptions: func(schema.GroupVersionResource, *metav1.ListOptions) {
			}}, false},
		} {
			i := acquire(t, f, widgets, test.options).Informer()
			if err := i.KeepHistory(10); (err == nil) != test.isKept {
				t.Errorf("KeepHistory with %s: got the error %v, want success %t", name, err, test.isKept)
			}
		}
	})
}

// TestAcquireTogether verifies that concurrent calls that add the same index to an existing informer all get
// the complete index.
func TestAcquireTogether(t *testing.T) {
	for name, options := range map[string]func(gate func()) ResourceOptions{
		"indexers": func(gate func()) ResourceOptions {
			return ResourceOptions{Indexers: cache.Indexers{"x": func(any) ([]string, error) {
				gate()
				return []string{"x"}, nil
			}}}
		},
		"indexes": func(gate func()) ResourceOptions {
			return ResourceOptions{Indexes: gatedIndex{"x", gate}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				server.Create(t, widgets, widget("web", "a"))
				f := newVirtualFactory(t, server, Options{})
				i := mustInformer(t, f, widgets)
				start(t, f)
				open := make(chan struct{})
				wants := options(func() { <-open })
				var all sync.WaitGroup
				for range 3 {
					all.Go(func() { // ends when the gate opens
						if _, err := f.Acquire(widgets, wants); err != nil {
							t.Error(err)
							return
						}
						if found, err := i.GetIndexer().ByIndex("x", "x"); err != nil || len(found) != 1 {
							t.Errorf("after Acquire, the index has %d objects (%v), want 1", len(found), err)
						}
					})
				}
				synctest.Wait()
				if i.GetIndexer().GetIndexers()["x"] != nil {
					t.Error("GetIndexers() contains an incomplete index")
				}
				close(open)
				all.Wait()
			})
		})
	}
}

// gatedIndex is an IndexSet with one index. It waits for gate before it returns its only value, its name.
type gatedIndex struct {
	indexNames
	gate func()
}

func (g gatedIndex) KeysJSON(json []byte, keys [][]string) [][]string {
	g.gate()
	return g.indexNames.KeysJSON(json, keys)
}

// TestReleaseRemovesIndexes verifies that a release removes the indexes of the handle, also from a lingering
// informer.
func TestReleaseRemovesIndexes(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		f := newVirtualFactory(t, server, Options{})
		start(t, f)
		first := acquire(t, f, widgets)
		must(t, first.AddIndexes(indexNames("x,y")))
		first.Release()
		next := acquire(t, f, widgets)
		if next.Informer() != first.Informer() {
			t.Fatal("Acquire did not return the lingering informer")
		}
		if there := next.Informer().GetIndexer().GetIndexers(); there["x"] != nil || there["y"] != nil {
			t.Errorf("the indexes of a released handle remain: got %d indexes", len(there))
		}
		must(t, next.AddIndexes(indexNames("x")))
		if err := first.AddIndexes(indexNames("z")); err == nil ||
			next.Informer().GetIndexer().GetIndexers()["z"] != nil {
			t.Errorf("AddIndexes() of a released handle = %v, want an error", err)
		}
	})
}
