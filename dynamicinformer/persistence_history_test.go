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

// image returns a backend with what this one keeps now, as a process leaves it that is killed.
func (s *memoryBackend) image() *memoryBackend {
	s.mu.Lock()
	defer s.mu.Unlock()
	image := newShelf()
	image.texts = s.texts
	for key, v := range s.views {
		image.views[key] = &storedContent{shelf: image, at: v.at, objects: maps.Clone(v.objects),
			blocks: slices.Clone(v.blocks), log: slices.Clone(v.log)}
	}
	return image
}

// TestResumeHistory restarts informers again and again, while objects come, change and go. Some processes are
// killed: the next one finds what was kept at any time before. Histories are compacted, and servers replaced.
// Each time the cache and what the handler was told must be what the server has.
func TestResumeHistory(t *testing.T) {
	for seed := range uint64(3) {
		newResumeHistory(seed, ResourceOptions{}, "a").run(t, func() *apitest.Server { return newServer(t) })
	}
}

// TestResumeHistoryOfNamespaces is TestResumeHistory for namespaces that are read one by one: those in which
// nothing has changed wait for bookmarks.
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
				// by which servers in memory are told apart
				createNamespaces(t, server, metav1.NamespaceSystem)
				return server
			})
		})
	}
}

// resumeHistory is what happens to the objects of some namespaces, and to what is kept of them.
type resumeHistory struct {
	random     *rand.Rand
	options    ResourceOptions
	namespaces []string
	server     *apitest.Server
	kept       *memoryBackend
	there      map[string]bool
}

func newResumeHistory(seed uint64, options ResourceOptions, namespaces ...string) *resumeHistory {
	h := &resumeHistory{random: rand.New(rand.NewPCG(seed, 5)), options: options, namespaces: namespaces,
		kept: newShelf(), there: map[string]bool{}}
	h.kept.texts = seed == 0
	return h
}

// change changes some objects.
func (h *resumeHistory) change(t *testing.T) {
	for range h.random.IntN(8) {
		namespace := h.namespaces[h.random.IntN(len(h.namespaces))]
		name := fmt.Sprint("w", namespace, h.random.IntN(20))
		w := widget(namespace, name)
		w.SetAnnotations(map[string]string{"round": fmt.Sprint(h.random.Uint64())})
		switch {
		case !h.there[name]:
			h.server.Create(t, widgets, w)
			h.there[name] = true
		case h.random.IntN(3) == 0:
			h.server.Delete(t, widgets, namespace, name)
			delete(h.there, name)
		default:
			h.server.Update(t, widgets, w)
		}
	}
}

func (h *resumeHistory) run(t *testing.T, newServer func() *apitest.Server) {
	t.Helper()
	h.server = newServer()
	older := h.kept.image()
	for range 40 {
		h.change(t)
		switch h.random.IntN(12) {
		case 0:
			h.server.Compact()
		case 1:
			h.server = newServer()
			clear(h.there)
			h.change(t)
		case 2:
			h.kept = older
		}
		older = runOnce(t, h.server, h.kept, h.options, h.random.IntN(2) == 0, func() { h.change(t) })
		if h.random.IntN(3) == 0 { // a process that was killed
			h.kept = older
		}
	}
}

// runOnce follows widgets through changes, and returns what was kept before the end. writes has it saved all
// the time.
func runOnce(t *testing.T, server *apitest.Server, kept *memoryBackend, view ResourceOptions, writes bool,
	change func()) *memoryBackend {
	t.Helper()
	options := Options{Persistence: kept, Config: server.Config(), HTTPClient: server.HTTPClient(t),
		Defaults: view}
	if writes {
		options.PersistenceInterval = time.Millisecond
		if view.Namespaces.set.IsSet() { // hours pass on the virtual clock
			options.PersistenceInterval = 100 * time.Millisecond
		}
	}
	f, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	i := mustInformer(t, f, widgets)
	d := &diary{}
	if _, err := i.AddEventHandler(d.handler()); err != nil {
		t.Fatal(err)
	}
	synced(t, f)
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
	told := map[string]bool{}
	for _, line := range d.all() {
		var verb, name string
		if _, err := fmt.Sscan(line, &verb, &name); err != nil {
			t.Fatal(err)
		}
		if had := told[name]; had == (verb == "add") {
			t.Fatalf("the handler was told %q of what it %v", line, had)
		}
		if told[name] = true; verb == "delete" {
			delete(told, name)
		}
	}
	if len(told) != len(expected) {
		t.Fatalf("the handler was told of %d objects of %d", len(told), len(expected))
	}
	image := kept.image()
	if err := f.Shutdown(longContext(t)); err != nil {
		t.Fatal(err)
	}
	return image
}
