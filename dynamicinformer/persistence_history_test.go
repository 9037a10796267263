package dynamicinformer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

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
	if err != nil {
		t.Fatal(err)
	}
	i := mustInformer(t, f, widgets)
	d := &eventLog{}
	if _, err := i.AddEventHandler(d.handler()); err != nil {
		t.Fatal(err)
	}
	startSynced(t, f)
	change()
	expected := func() map[string]string {
		list, err := server.Client(t).Resource(widgets).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
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
	if err := i.Flush(longContext(t)); err != nil {
		t.Fatal(err)
	}
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
	if err := f.Shutdown(longContext(t)); err != nil {
		t.Fatal(err)
	}
	return image
}
