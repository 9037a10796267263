package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/persist"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// persistWidgets runs an informer of widgets, shuts it down, and checks that the content was saved.
func persistWidgets(t *testing.T, server *apitest.Server, s persistence.Backend, options ResourceOptions) {
	t.Helper()
	f := newFactory(t, server, Options{Persistence: s, Defaults: options})
	i := startSynced(t, f)
	must(t, f.Shutdown(longContext(t)))
	if status := i.Persistence(); status.Err != nil || status.Checkpoint == (persistence.Checkpoint{}) {
		t.Fatalf("no content was saved: %+v", status)
	}
}

// resumedInformer is an informer that started from persisted objects.
type resumedInformer struct {
	*Informer
	factory   *Factory
	server    *apitest.Server
	before    int // number of requests before the start
	testLists int // number of lists that the test sent
	diary     *eventLog
}

// resume runs an informer of widgets with another factory and a handler.
func resume(t *testing.T, server *apitest.Server, s persistence.Backend,
	options ResourceOptions) *resumedInformer {
	t.Helper()
	r := &resumedInformer{server: server, before: len(server.Requests()), diary: &eventLog{}}
	f := newFactory(t, server, Options{Persistence: s, Defaults: options})
	r.factory, r.Informer = f, mustInformer(t, f, widgets)
	if _, err := r.AddEventHandler(r.diary.handler()); err != nil {
		t.Fatal(err)
	}
	startSynced(t, f)
	must(t, r.Flush(longContext(t)))
	return r
}

// handler returns a handler that records its calls in d.
func (d *eventLog) handler() cache.ResourceEventHandler {
	name := func(obj any) string {
		if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = last.Obj
		}
		return obj.(metav1.Object).GetName()
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, initial bool) { d.add("add %s %v", name(obj), initial) },
		UpdateFunc: func(_, obj any) { d.add("update %s", name(obj)) },
		DeleteFunc: func(obj any) { d.add("delete %s", name(obj)) },
	}
}

// check compares the handler's events, in any order, and the cache's content.
func (r *resumedInformer) check(t *testing.T, want ...string) {
	t.Helper()
	got := r.diary.all()
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the handler received (-want +got):\n%s", diff)
	}
	cached := map[string]string{}
	for _, obj := range r.GetStore().List() {
		o := obj.(*unstructured.Unstructured)
		cached[o.GetName()] = o.GetResourceVersion()
	}
	list, err := r.server.Client(t).Resource(widgets).List(t.Context(), metav1.ListOptions{})
	r.testLists++
	must(t, err)
	onServer := map[string]string{}
	for _, o := range list.Items {
		onServer[o.GetName()] = o.GetResourceVersion()
	}
	if diff := cmp.Diff(onServer, cached); diff != "" {
		t.Errorf("the cache differs from the server (-server +cache):\n%s", diff)
	}
}

// countLists returns the number of lists of all objects since the informer was requested.
func (r *resumedInformer) countLists() int {
	lists := 0
	for _, request := range r.server.Requests()[r.before:] {
		verb, uri, _ := strings.Cut(request, " ")
		if path, _, _ := strings.Cut(uri, "?"); strings.HasSuffix(path, "/widgets") &&
			(verb == "watch-list" || verb == "list" && !strings.Contains(uri, "limit=1")) {
			lists++
		}
	}
	return lists - r.testLists
}

// storages are options whose informers restore objects in different ways.
var storages = map[string]ResourceOptions{
	"inline": {}, "reflector": {Storage: Storage{Mode: StorageObject}},
	"metadata":   {Storage: Storage{Mode: StorageMetadata}},
	"keep":       {Keep: Keep{Paths: []string{}}},
	"compressed": {Storage: adaptive},
	"namespaces": {Namespaces: InNamespaces("a",
		"b")}, "namespaces, reflectors": {Namespaces: InNamespaces("b", "a"),
		Storage: Storage{Mode: StorageObject}},
}

func TestResumeWithoutList(t *testing.T) {
	for name, options := range storages {
		t.Run(name, func(t *testing.T) {
			server, s := newServer(t), newMemoryBackend()
			server.Create(t, widgets, widget("a", "one"), widget("a", "two"), widget("b", "three"))
			persistWidgets(t, server, s, options)
			r := resume(t, server, s, options)
			r.check(t, "add one true", "add three true", "add two true")
			if n := r.countLists(); n != 0 {
				t.Errorf("all objects were listed %d times, want 0", n)
			}
			if status := r.Persistence(); !status.Resumed || status.Err != nil {
				t.Errorf("Persistence() = %+v, want resumed", status)
			}
			// The watch continues.
			server.Create(t, widgets, widget("b", "four"))
			server.Delete(t, widgets, "a", "one")
			await(t, func() bool { return len(r.diary.all()) == 5 })
			r.check(t, "add four false", "add one true", "add three true", "add two true", "delete one")
		})
	}
}

// await waits for a condition.
func await(t testing.TB, condition func() bool) {
	t.Helper()
	for ctx := longContext(t); !condition(); {
		if ctx.Err() != nil {
			t.Fatal("timed out waiting for the condition")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestResumeWithChangesMeanwhile(t *testing.T) {
	for name, options := range storages {
		// A namespace without changes waits for a bookmark.
		onFakeClock(t, func(t *testing.T, server *apitest.Server) {
			s := newMemoryBackend()
			server.Create(t, widgets, widget("a", "stays"), widget("a", "goes"), widget("b", "changes"))
			persistWidgets(t, server, s, options)
			server.Delete(t, widgets, "a", "goes")
			changed := widget("b", "changes")
			changed.SetLabels(map[string]string{"changed": "yes"})
			server.Update(t, widgets, changed)
			server.Create(t, widgets, widget("b", "comes"))
			r := resume(t, server, s, options)
			r.check(t, "add changes true", "add comes true", "add stays true")
			if n := r.countLists(); n != 0 {
				t.Errorf("%s: all objects were listed %d times, want 0", name, n)
			}
		})
	}
}

func TestResumeAfterCompaction(t *testing.T) {
	server, s := newServer(t), newMemoryBackend()
	server.Create(t, widgets, widget("a", "stays"), widget("a", "goes"))
	persistWidgets(t, server, s, ResourceOptions{})
	server.Delete(t, widgets, "a", "goes")
	server.Create(t, widgets, widget("b", "comes"))
	server.Compact()
	r := resume(t, server, s, ResourceOptions{})
	r.check(t, "add comes true", "add stays true")
	if n := r.countLists(); n == 0 {
		t.Error("no list was sent after the compaction")
	}
	if r.Persistence().Resumed {
		t.Error("Persistence().Resumed = true after a list")
	}
}

// TestResumeOfAnotherServer verifies that persisted content of another server or type is ignored.
func TestResumeOfAnotherServer(t *testing.T) {
	for name, change := range map[string]func(*persistence.Checkpoint){
		"another address": func(at *persistence.Checkpoint) { at.Endpoint = "elsewhere" },
		"another cluster": func(at *persistence.Checkpoint) {
			at.Endpoint,
				at.Cluster = "elsewhere", "another"
		},
		"another API version": func(at *persistence.Checkpoint) { at.APIVersion = "v2" },
		"a later version": func(at *persistence.Checkpoint) {
			at.ResourceVersion = "1" +
				at.ResourceVersion
		},
		"no number":        func(at *persistence.Checkpoint) { at.ResourceVersion = "newest" },
		"too few objects":  func(at *persistence.Checkpoint) { at.Objects++ },
		"no such number":   func(at *persistence.Checkpoint) { at.Objects = -1 },
		"too large number": func(at *persistence.Checkpoint) { at.Objects = math.MaxInt },
		"too many objects": func(at *persistence.Checkpoint) { at.Objects-- },
	} {
		t.Run(name, func(t *testing.T) {
			server, s := newServer(t), newMemoryBackend()
			server.Create(t, widgets, widget("a", "one"), widget("a", "gone"))
			persistWidgets(t, server, s, ResourceOptions{})
			server.Delete(t, widgets, "a", "gone")
			change(&s.onlyContent(t).checkpoint)
			r := resume(t, server, s, ResourceOptions{})
			r.check(t, "add one true")
			if r.Persistence().Resumed {
				t.Error("Persistence().Resumed = true with content of another server or type")
			}
		})
	}
}

// TestResuming verifies that restored objects stay unconfirmed while the server does not answer.
func TestResuming(t *testing.T) {
	server, s := newServer(t), newMemoryBackend()
	server.Create(t, widgets, widget("a", "one"))
	persistWidgets(t, server, s, ResourceOptions{})
	server.AddFaults(fault(widgetsPath, "list", http.StatusServiceUnavailable))
	f := newFactory(t, server, Options{Persistence: s})
	i := mustInformer(t, f, widgets)
	early, late := &eventLog{}, &eventLog{}
	if _, err := i.AddEventHandler(early.handler()); err != nil {
		t.Fatal(err)
	}
	must(t, f.Start(longContext(t)))
	current := waitFor(t, i, func(s status.Status) bool { return s.State == status.Resuming })
	if !current.Stale || current.Settled() || i.HasSynced() {
		t.Errorf("Status() = %v, synced %v; want stale, not settled, false", current, i.HasSynced())
	}
	if keys := i.GetStore().ListKeys(); !slices.Equal(keys, []string{"a/one"}) {
		t.Errorf("the cache has the keys %v, want a/one", keys)
	}
	if _, err := i.AddEventHandler(late.handler()); err != nil {
		t.Fatal(err)
	}
	must(t, i.Flush(longContext(t)))
	if events := append(early.all(), late.all()...); len(events) > 0 {
		t.Errorf("handlers received %v before the confirmation, want none", events)
	}
	server.Repair()
	i.Retry()
	waitFor(t, i, func(s status.Status) bool { return s.State == status.Synced && !s.Stale })
	must(t, i.Flush(longContext(t)))
	for _, d := range []*eventLog{early, late} {
		if diff := cmp.Diff([]string{"add one true"}, d.all()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
}

// TestPersistenceFails verifies that a failing backend does not stop an informer, whose logger receives the
// error. Failed saves are retried.
func TestPersistenceFails(t *testing.T) {
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(ctx context.Context, _ error, msg string, _ ...any) { klog.FromContext(ctx).Info(msg) }}
	defer func() { utilruntime.ErrorHandlers = nil }()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	server, s := newServer(t), newMemoryBackend()
	s.failure = errors.New("the disk is full")
	server.Create(t, widgets, widget("a", "one"))
	f := newFactory(t, server, Options{Persistence: s, PersistenceInterval: time.Millisecond})
	mustInformer(t, f, widgets)
	must(t, f.Start(klog.NewContext(longContext(t), logger)))
	i := startSynced(t, f)
	logs := logger.GetSink().(ktesting.Underlier).GetBuffer()
	await(t, func() bool { return strings.Contains(logs.String(), "Cannot persist") && i.Persistence().Failures > 1 })
	if status := i.Persistence(); !errors.Is(status.Err, s.failure) || !status.Enabled || status.Saves > 0 ||
		status.Checkpoint != (persistence.Checkpoint{}) {
		t.Errorf("Persistence() = %+v, want enabled with the backend's error and no checkpoint", status)
	}
	if current := i.Status(); current.State != status.Synced {
		t.Errorf("Status() = %v, want Synced", current)
	}
	s.mu.Lock()
	s.failure = nil
	s.mu.Unlock()
	await(t, func() bool {
		status := i.Persistence()
		return status.Err == nil && status.Saves > 0 && status.Checkpoint.Objects == 1
	})
}

// TestPersistedInBatches verifies that many changes are written to the backend in one save.
func TestPersistedInBatches(t *testing.T) {
	server, s := newServer(t), newMemoryBackend()
	for k := range 100 {
		server.Create(t, widgets, widget("a", fmt.Sprint("w", k)))
	}
	f := newFactory(t, server, Options{Persistence: s})
	startSynced(t, f)
	for k := range 50 {
		server.Delete(t, widgets, "a", fmt.Sprint("w", k))
	}
	must(t, f.Shutdown(longContext(t)))
	if s.saves != 1 {
		t.Errorf("the content was saved %d times, want 1", s.saves)
	}
	v, objects := s.onlyContent(t), 0
	for _, record := range v.records {
		read, err := packed.ReadBlock(record[0], nil, 0)
		must(t, err)
		objects += len(read)
	}
	if v.checkpoint.Objects != objects {
		t.Errorf("%d objects are stored, want the checkpoint's %d", objects, v.checkpoint.Objects)
	}
}

func TestWhyNotPersisted(t *testing.T) {
	yes, no := true, false
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	for name, c := range map[string]struct {
		gvr     schema.GroupVersionResource
		options ResourceOptions
		kept    bool
	}{
		"everything":           {widgets, ResourceOptions{}, true},
		"switched off":         {widgets, ResourceOptions{Persist: &no}, false},
		"secrets":              {secrets, ResourceOptions{}, false},
		"secrets with Persist": {secrets, ResourceOptions{Persist: &yes}, true},
		"transform": {widgets,
			ResourceOptions{Transform: func(o any) (any, error) { return o, nil }}, false},
		"tweak": {widgets, ResourceOptions{TweakListOptions: func(schema.GroupVersionResource,
			*metav1.ListOptions) {
		}}, false},
		"nothing": {widgets, ResourceOptions{LabelSelector: labels.Nothing()}, false},
	} {
		if why := c.options.whyNotPersisted(c.gvr); (why == "") != c.kept {
			t.Errorf("%s: whyNotPersisted() = %q, want it persisted: %v", name, why, c.kept)
		}
	}
}

// hangingBackend is a backend whose methods block until release is closed.
type hangingBackend struct {
	*memoryBackend
	release chan struct{}
}

func (h hangingBackend) Open(ctx context.Context, view persistence.View) (persistence.StoredContent, error) {
	<-h.release
	return h.memoryBackend.Open(ctx, view)
}

// shortenDiskTimeout reduces the time that informers wait for the disk.
func shortenDiskTimeout(t *testing.T) {
	previous := persist.DiskTimeout
	persist.DiskTimeout = 20 * time.Millisecond
	t.Cleanup(func() { persist.DiskTimeout = previous })
}

// TestHangingPersistence verifies that an informer syncs and stops although its backend does not answer, and
// that the status reports the backend. When the backend answers, the content is closed.
func TestHangingPersistence(t *testing.T) {
	shortenDiskTimeout(t)
	server, h := newServer(t), hangingBackend{newMemoryBackend(), make(chan struct{})}
	server.Create(t, widgets, widget("a", "one"))
	f := newFactory(t, server, Options{Persistence: h, PersistenceInterval: time.Millisecond})
	i := startSynced(t, f)
	if err := i.Persistence().Err; !errors.Is(err, persist.ErrSlowDisk) {
		t.Errorf("after the sync, Persistence().Err = %v, want ErrSlowDisk", err)
	}
	must(t, f.Shutdown(longContext(t)))
	if err := i.Persistence().Err; !errors.Is(err, persist.ErrSlowDisk) {
		t.Errorf("after the stop, Persistence().Err = %v, want ErrSlowDisk", err)
	}
	close(h.release)
	await(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		v := h.contents[i.options.view(widgets)]
		return v != nil && !v.claimed
	})
}

// TestLateLoad verifies that content that a disk returns too late is ignored.
func TestLateLoad(t *testing.T) {
	for name, options := range storages {
		t.Run(name, func(t *testing.T) {
			server, h := newServer(t), hangingBackend{newMemoryBackend(), make(chan struct{})}
			server.Create(t, widgets, widget("a", "one"))
			persistWidgets(t, server, h.memoryBackend, options)
			shortenDiskTimeout(t)
			server.AddFaults(fault(widgetsPath, "list", http.StatusServiceUnavailable))
			f := newFactory(t, server, Options{Persistence: h, Defaults: options})
			i := mustInformer(t, f, widgets)
			must(t, f.Start(longContext(t)))
			await(t, func() bool { return errors.Is(i.Persistence().Err, persist.ErrSlowDisk) })
			close(h.release)
			await(t, func() bool { return i.persister.Idle() })
			server.Repair()
			i.Retry()
			waitFor(t, i, func(s status.Status) bool { return s.State == status.Synced && !s.Stale })
			if keys := i.GetStore().ListKeys(); !slices.Equal(keys, []string{"a/one"}) {
				t.Errorf("the cache has the keys %v, want a/one", keys)
			}
		})
	}
}

// roundTripper is a function that implements http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
