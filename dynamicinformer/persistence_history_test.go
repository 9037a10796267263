package dynamicinformer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// image returns a shelf with what this one keeps now, as a process leaves it that is killed.
func (s *shelf) image() *shelf {
	s.mu.Lock()
	defer s.mu.Unlock()
	image := newShelf()
	image.texts = s.texts
	for key, v := range s.views {
		image.views[key] = &shelved{shelf: image, at: v.at, objects: maps.Clone(v.objects), blocks: slices.Clone(v.blocks), log: slices.Clone(v.log)}
	}
	return image
}

// TestResumeHistory restarts informers again and again, while objects come, change and go. Some processes are killed: the next
// one finds what was kept at any time before. Histories are compacted, and servers replaced. Each time the cache and what the
// handler was told must be what the server has.
func TestResumeHistory(t *testing.T) {
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 5))
		server, kept := newServer(t), newShelf()
		kept.texts = seed == 0
		there := map[string]int{}
		change := func() {
			for range random.IntN(8) {
				name := fmt.Sprint("w", random.IntN(20))
				w := widget("a", name)
				w.SetAnnotations(map[string]string{"round": fmt.Sprint(random.Uint64())})
				_, exists := there[name]
				switch {
				case !exists:
					server.Create(t, widgets, w)
					there[name] = 1
				case random.IntN(3) == 0:
					server.Delete(t, widgets, "a", name)
					delete(there, name)
				default:
					server.Update(t, widgets, w)
				}
			}
		}
		older := kept.image()
		for range 40 {
			change()
			switch random.IntN(12) {
			case 0:
				server.Compact()
			case 1:
				server = newServer(t)
				clear(there)
				change()
			case 2:
				kept = older
			}
			older = runOnce(t, server, kept, random.IntN(2) == 0, change)
			if random.IntN(3) == 0 { // a process that was killed
				kept = older
			}
		}
	}
}

// runOnce follows widgets through changes, and returns what was kept before the end. writes has it saved all the time.
func runOnce(t *testing.T, server *apitest.Server, kept *shelf, writes bool, change func()) *shelf {
	t.Helper()
	options := Options{Persistence: kept, Config: server.Config()}
	if writes {
		options.PersistenceInterval = time.Millisecond
	}
	f, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	i := ask(t, f, widgets)
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
			versions["a/"+o.GetName()] = o.GetResourceVersion()
		}
		return versions
	}()
	await(t, func() bool {
		shown := map[string]string{}
		for _, obj := range i.GetStore().List() {
			o := obj.(metav1.Object)
			shown["a/"+o.GetName()] = o.GetResourceVersion()
		}
		return maps.Equal(expected, shown)
	})
	if err := i.Flush(patient(t)); err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, line := range d.all() {
		var verb, name string
		if _, err := fmt.Sscan(line, &verb, &name); err != nil {
			t.Fatal(err)
		}
		if had := told["a/"+name]; had == (verb == "add") {
			t.Fatalf("the handler was told %q of what it %v", line, had)
		}
		if told["a/"+name] = true; verb == "delete" {
			delete(told, "a/"+name)
		}
	}
	if len(told) != len(expected) {
		t.Fatalf("the handler was told of %d objects of %d", len(told), len(expected))
	}
	image := kept.image()
	if err := f.Shutdown(patient(t)); err != nil {
		t.Fatal(err)
	}
	return image
}
