package dynamicinformer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/informer/conformance"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

var twoNamespaces = ResourceOptions{Namespaces: InNamespaces("a", "b")}

// TestResumeWhereOneNamespaceIsForbidden verifies that each namespace is confirmed separately. The restored
// objects of a namespace that is now forbidden can be read, as stale. No handler receives them, and they stay
// persisted.
func TestResumeWhereOneNamespaceIsForbidden(t *testing.T) {
	onFakeClock(t, resumeWhereOneNamespaceIsForbidden)
}

func resumeWhereOneNamespaceIsForbidden(t *testing.T, server *apitest.Server) {
	s := newMemoryBackend()
	server.Create(t, widgets, widget("a", "one"), widget("b", "two"))
	persistWidgets(t, server, s, twoNamespaces)
	forbid(server, inNamespace("b"))
	f := newFactory(t, server, Options{Persistence: s, Defaults: twoNamespaces,
		PersistenceInterval: time.Millisecond})
	i, d := mustInformer(t, f, widgets), &eventLog{}
	if _, err := i.AddEventHandler(d.handler()); err != nil {
		t.Fatal(err)
	}
	must(t, f.Start(longContext(t)))
	await(t, func() bool { return slices.Equal(d.all(), []string{"add one true"}) })
	current := waitFor(t, i, func(s status.Status) bool {
		return s.State == status.Degraded &&
			s.Reason == status.ReasonForbidden
	})
	if !current.Stale || !current.Resuming || i.HasSynced() {
		t.Errorf("Status() = %+v, synced %v; want stale and resuming, false", current, i.HasSynced())
	}
	late := &eventLog{}
	if _, err := i.AddEventHandler(late.handler()); err != nil {
		t.Fatal(err)
	}
	server.Create(t, widgets, widget("a", "three"))
	await(t, func() bool {
		persistence := i.Persistence()
		return len(late.all()) == 2 && persistence.Checkpoint.Objects == 3 && persistence.Err == nil
	})
	if got := i.GetStore().ListKeys(); len(got) != 3 {
		t.Errorf("the cache has the keys %v, want 3", got)
	}
	server.Repair()
	i.Retry()
	waitFor(t, i, func(s status.Status) bool { return s.State == status.Synced && !s.Stale && !s.Resuming })
	must(t, i.Flush(longContext(t)))
	for _, events := range [][]string{d.all(), late.all()} {
		if slices.Sort(events); len(events) != 3 || events[2] != "add two true" {
			t.Errorf("the handler received %v, want 3 events", events)
		}
	}
	await(t, func() bool { return i.Persistence().Resumed })
}

// TestDeletedNamespaces verifies that restored objects of a deleted namespace are neither shown nor
// delivered, and are no longer persisted.
func TestDeletedNamespaces(t *testing.T) { onFakeClock(t, deletedNamespaces) }

func deletedNamespaces(t *testing.T, server *apitest.Server) {
	s := newMemoryBackend()
	createNamespaces(t, server, "team-a", "team-b")
	server.Create(t, widgets, widget("team-a", "one"), widget("team-b", "two"))
	forbid(server, widgetsPath)
	options := ResourceOptions{Namespaces: teamNamespaces}
	persistWidgets(t, server, s, options)
	namespaces := server.Client(t).Resource(namespacesGVR)
	must(t, namespaces.Delete(t.Context(), "team-b", metav1.DeleteOptions{}))
	server.Delete(t, widgets, "team-b", "two")
	createNamespaces(t, server, "team-c")
	server.Create(t, widgets, widget("team-c", "three"))
	r := resume(t, server, s, options)
	if got := r.diary.all(); !slices.Contains(got, "add one true") ||
		!slices.Contains(got, "add three true") || len(got) != 2 {
		t.Errorf("the handler received %v, want one and three", got)
	}
	lists := 0
	for _, request := range r.server.Requests()[r.before:] {
		if strings.HasPrefix(request, "watch-list "+inNamespace("team-a")) || strings.HasPrefix(request,
			"list "+inNamespace("team-a")) && !strings.Contains(request, "limit=1") {
			lists++
		}
	}
	if lists != 0 {
		t.Errorf("restored namespaces were listed %d times, want 0", lists)
	}
	must(t, r.factory.Shutdown(longContext(t)))
	at := r.Persistence().Checkpoint
	if ok, err := regexp.MatchString(`^team-a=\d+,team-c=\d+$`, at.Namespaces); !ok || err != nil ||
		at.Objects != 2 {
		t.Errorf("the checkpoint is %+v (%v), want team-a and team-c with 2 objects", at, err)
	}
}

// TestRefusedNamespace verifies that a namespace is listed after its history has expired; the others are not.
func TestRefusedNamespace(t *testing.T) { onFakeClock(t, refusedNamespace) }

func refusedNamespace(t *testing.T, server *apitest.Server) {
	s := newMemoryBackend()
	server.Create(t, widgets, widget("a", "one"), widget("b", "two"))
	persistWidgets(t, server, s, twoNamespaces)
	server.Create(t, widgets, widget("a", "three"), widget("b", "four"))
	server.Delete(t, widgets, "b", "two")
	server.AddFaults(fault(inNamespace("b"), "watch", http.StatusGone))
	f := newFactory(t, server, Options{Persistence: s, Defaults: twoNamespaces})
	i, d := mustInformer(t, f, widgets), &eventLog{}
	if _, err := i.AddEventHandler(d.handler()); err != nil {
		t.Fatal(err)
	}
	must(t, f.Start(longContext(t)))
	must(t, f.WaitForSync(longContext(t)))
	server.Repair()
	must(t, i.Flush(longContext(t)))
	// It may have been listed more than once, because its watch still failed.
	got := slices.DeleteFunc(d.all(), func(line string) bool { return strings.HasPrefix(line, "update ") })
	if slices.Sort(got); !slices.Equal(got, []string{"add four true", "add one true", "add three true"}) {
		t.Errorf("the handler received %v, want four, one and three", got)
	}
	if i.Persistence().Resumed {
		t.Error("Persistence().Resumed = true although a namespace was listed")
	}
}

// TestRestoredObjectsAreDropped verifies that restored objects are dropped if reading all namespaces is
// forbidden and the namespaces are unknown. The status then does not report a restore.
func TestRestoredObjectsAreDropped(t *testing.T) { onFakeClock(t, restoredObjectsAreDropped) }

func restoredObjectsAreDropped(t *testing.T, server *apitest.Server) {
	s := newMemoryBackend()
	createNamespaces(t, server, "team-a")
	server.Create(t, widgets, widget("team-a", "one"))
	options := ResourceOptions{Namespaces: MatchingNamespaces([]string{"team-*"}, nil)}
	persistWidgets(t, server, s, options)
	forbid(server, widgetsPath, namespacesPath)
	f := newFactory(t, server, Options{Persistence: s, Defaults: options})
	i := mustInformer(t, f, widgets)
	must(t, f.Start(longContext(t)))
	current := waitFor(t, i, func(s status.Status) bool { return s.Reason == status.ReasonForbidden })
	synctest.Wait()
	if current = i.Status(); len(i.GetStore().ListKeys()) > 0 || current.Resuming || current.Stale {
		t.Errorf("the cache has the keys %v and Status() = %+v, want none, not resuming",
			i.GetStore().ListKeys(), current)
	}
	server.Repair()
	i.Retry()
	waitFor(t, i, func(s status.Status) bool { return s.State == status.Synced })
	if got := i.GetStore().ListKeys(); len(got) != 1 {
		t.Errorf("the cache has the keys %v, want 1", got)
	}
}

// TestWrittenNamespaces verifies that objects that a user wrote to the cache are not persisted until the
// namespace is listed again.
func TestWrittenNamespaces(t *testing.T) { onFakeClock(t, writtenNamespaces) }

// TestNamespacesOfOneList verifies that the persisted state of a cluster-wide watch can be resumed by
// namespaces if the cluster-wide watch is now forbidden. The opposite is not possible.
func TestNamespacesOfOneList(t *testing.T) { onFakeClock(t, namespacesOfOneList) }

func writtenNamespaces(t *testing.T, server *apitest.Server) {
	s := newMemoryBackend()
	server.Create(t, widgets, widget("a", "one"), widget("b", "two"))
	f := newFactory(t, server, Options{Persistence: s, Defaults: twoNamespaces})
	i := startSynced(t, f)
	must(t, i.GetStore().Add(widget("a", "mine")))
	server.Create(t, widgets, widget("a", "three"))
	await(t, func() bool { return len(i.GetStore().ListKeys()) == 4 })
	must(t, f.Shutdown(longContext(t)))
	if at := i.Persistence().Checkpoint; at.Objects != 0 {
		t.Errorf("the checkpoint is %+v, want no objects", at)
	}
	r := resume(t, server, s, twoNamespaces)
	r.check(t, "add one true", "add three true", "add two true")
}

func namespacesOfOneList(t *testing.T, server *apitest.Server) {
	s := newMemoryBackend()
	createNamespaces(t, server, "team-a", "team-b", "other")
	server.Create(t, widgets, widget("team-a", "one"), widget("team-b", "two"), widget("other", "not"))
	options := ResourceOptions{Namespaces: teamNamespaces}
	persistWidgets(t, server, s, options)
	forbid(server, widgetsPath)
	r := resume(t, server, s, options)
	if got := r.diary.all(); !slices.Contains(got, "add one true") || !slices.Contains(got, "add two true") ||
		len(got) != 2 {
		t.Errorf("the handler received %v, want one and two", got)
	}
	if !r.Persistence().Resumed {
		t.Error("Persistence().Resumed = false, want true")
	}
	server.Create(t, widgets, widget("team-b", "four"))
	await(t, func() bool { return len(r.diary.all()) == 3 })
	must(t, r.factory.Shutdown(longContext(t)))
	server.Repair()
	r = resume(t, server, s, options)
	if got := r.diary.all(); len(got) != 3 || r.Persistence().Resumed {
		t.Errorf("the handler received %v, resumed: %v; want 3 events, false", got, r.Persistence().Resumed)
	}
}

// TestAnotherClusterTakesOver verifies that if another cluster gets the address while a process runs, its
// objects are not saved under the identity of the first cluster.
func TestAnotherClusterTakesOver(t *testing.T) {
	types := []apitest.Type{{GVR: widgets, Kind: "Widget", Namespaced: true},
		{GVR: namespacesGVR, Kind: "Namespace"}}
	first, second, s := apitest.New(t, types...), apitest.New(t, types...), newMemoryBackend()
	for _, server := range []*apitest.Server{first, second} {
		createNamespaces(t, server, metav1.NamespaceSystem)
	}
	first.Create(t, widgets, widget("a", "one"))
	second.Create(t, widgets, widget("a", "two"), widget("a", "three"), widget("a", "four"))

	var current atomic.Pointer[apitest.Server]
	current.Store(first)
	faults, config := conformance.NewFaults(), first.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return faults.Wrap(roundTripper(func(r *http.Request) (*http.Response, error) {
			to, err := url.Parse(current.Load().URL)
			if err != nil {
				return nil, err
			}
			r = r.Clone(r.Context())
			r.URL.Host, r.Host = to.Host, ""
			return next.RoundTrip(r)
		}))
	})
	f, err := New(Options{Config: config, Persistence: s, PersistenceInterval: time.Millisecond})
	must(t, err)
	i := startSynced(t, f)
	await(t, func() bool { return i.Persistence().Checkpoint.Objects == 1 })
	current.Store(second)
	await(t, func() bool {
		faults.ExpireWatches() // again, because the watch may open only now
		return len(i.GetStore().ListKeys()) == 3
	})
	must(t, f.Shutdown(longContext(t)))
	if i.Persistence().Err == nil {
		t.Error("Persistence().Err = nil, want an error about the other cluster")
	}

	for range 5 { // so that its version exceeds the one of the second cluster
		first.Create(t, widgets, widget("a", "later"))
		first.Delete(t, widgets, "a", "later")
	}
	r := resume(t, first, s, ResourceOptions{})
	r.check(t, "add one true")
	if keys := r.GetStore().ListKeys(); !slices.Equal(keys, []string{"a/one"}) {
		t.Errorf("the cache has the keys %v, want a/one", keys)
	}
}

// copyContent returns a copy of the backend's current content, as a killed process would leave it.
func (s *memoryBackend) copyContent() *memoryBackend {
	s.mu.Lock()
	defer s.mu.Unlock()
	image := newMemoryBackend()
	for view, v := range s.contents {
		image.contents[view] = &storedContent{backend: image, checkpoint: v.checkpoint,
			records: slices.Clone(v.records), changes: v.changes}
	}
	return image
}

// TestResumeHistory restarts informers repeatedly while objects change. Some processes are killed: the next
// one finds the content of any earlier time. Histories are compacted, and servers replaced. Each time the
// cache and the handler's events must equal the server's content.
func TestResumeHistory(t *testing.T) {
	for seed := range uint64(3) {
		newResumeHistory(seed, ResourceOptions{}, "a").run(t, func() *apitest.Server { return newServer(t) })
	}
}

// TestResumeHistoryOfNamespaces is TestResumeHistory with namespaces that are watched separately. Namespaces
// without changes wait for bookmarks.
func TestResumeHistoryOfNamespaces(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			options := ResourceOptions{Namespaces: InNamespaces("a", "b", "c")}
			if seed%2 == 1 {
				options.Storage.Mode = StorageObject
			}
			newResumeHistory(seed, options, "a", "b", "c").run(t, func() *apitest.Server {
				server := apitest.NewInMemory(t, apitest.Type{GVR: widgets, Kind: "Widget", Namespaced: true},
					apitest.Type{GVR: namespacesGVR, Kind: "Namespace"})
				// The UID of this namespace identifies a server in memory.
				createNamespaces(t, server, metav1.NamespaceSystem)
				return server
			})
		})
	}
}

// resumeHistory is a random sequence of changes of some namespaces and of their persisted content.
type resumeHistory struct {
	random     *rand.Rand
	options    ResourceOptions
	namespaces []string
	server     *apitest.Server
	backend    *memoryBackend
	existing   map[string]bool
}

func newResumeHistory(seed uint64, options ResourceOptions, namespaces ...string) *resumeHistory {
	h := &resumeHistory{random: rand.New(rand.NewPCG(seed, 5)), options: options, namespaces: namespaces,
		backend: newMemoryBackend(), existing: map[string]bool{}}
	return h
}

func (h *resumeHistory) change(t *testing.T) {
	for range h.random.IntN(8) {
		namespace := h.namespaces[h.random.IntN(len(h.namespaces))]
		name := fmt.Sprint("w", namespace, h.random.IntN(20))
		w := widget(namespace, name)
		w.SetAnnotations(map[string]string{"round": fmt.Sprint(h.random.Uint64())})
		switch {
		case !h.existing[name]:
			h.server.Create(t, widgets, w)
			h.existing[name] = true
		case h.random.IntN(3) == 0:
			h.server.Delete(t, widgets, namespace, name)
			delete(h.existing, name)
		default:
			h.server.Update(t, widgets, w)
		}
	}
}

func (h *resumeHistory) run(t *testing.T, newServer func() *apitest.Server) {
	t.Helper()
	h.server = newServer()
	older := h.backend.copyContent()
	for range 40 {
		h.change(t)
		switch h.random.IntN(12) {
		case 0:
			h.server.Compact()
		case 1:
			h.server = newServer()
			clear(h.existing)
			h.change(t)
		case 2:
			h.backend = older
		}
		older = runProcess(t, h.server, h.backend, h.options, h.random.IntN(2) == 0, func() { h.change(t) })
		if h.random.IntN(3) == 0 { // a killed process
			h.backend = older
		}
	}
}

// runProcess runs an informer of widgets during changes, and returns the persisted content before the end. If
// writes is set, it saves continuously.
func runProcess(t *testing.T, server *apitest.Server, backend *memoryBackend,
	view ResourceOptions, writes bool,
	change func()) *memoryBackend {
	t.Helper()
	options := Options{Persistence: backend, Config: server.Config(), HTTPClient: server.HTTPClient(t),
		Defaults: view}
	if writes {
		options.PersistenceInterval = time.Millisecond
		if !view.Namespaces.set.IsAll() { // hours pass on the virtual clock
			options.PersistenceInterval = 100 * time.Millisecond
		}
	}
	f, err := New(options)
	must(t, err)
	i := mustInformer(t, f, widgets)
	d := &eventLog{}
	if _, err := i.AddEventHandler(d.handler()); err != nil {
		t.Fatal(err)
	}
	startSynced(t, f)
	change()
	expected := func() map[string]string {
		list, err := server.Client(t).Resource(widgets).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		versions := map[string]string{}
		for _, o := range list.Items {
			versions[o.GetNamespace()+"/"+o.GetName()] = o.GetResourceVersion()
		}
		return versions
	}()
	await(t, func() bool {
		shown := map[string]string{}
		for _, obj := range i.GetStore().List() {
			o := obj.(metav1.Object)
			shown[o.GetNamespace()+"/"+o.GetName()] = o.GetResourceVersion()
		}
		return maps.Equal(expected, shown)
	})
	must(t, i.Flush(longContext(t)))
	delivered := map[string]bool{}
	for _, line := range d.all() {
		var verb, name string
		if _, err := fmt.Sscan(line, &verb, &name); err != nil {
			t.Fatal(err)
		}
		if exists := delivered[name]; exists == (verb == "add") {
			t.Fatalf("the handler received %q with the object present: %v", line, exists)
		}
		if delivered[name] = true; verb == "delete" {
			delete(delivered, name)
		}
	}
	if len(delivered) != len(expected) {
		t.Fatalf("the handler received %d objects, want %d", len(delivered), len(expected))
	}
	image := backend.copyContent()
	must(t, f.Shutdown(longContext(t)))
	return image
}
