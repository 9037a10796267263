package dynamicinformer

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// The server of TestMemoryBudgetHoldsWhileListing has manyObjects objects of objectBytes each, 36 MB of JSON.
const (
	manyObjects  = 3000
	objectBytes  = 12 << 10
	memoryBudget = 8 << 20
)

// heapPeak measures the largest growth of the live heap since start.
type heapPeak struct {
	mu         sync.Mutex
	begin, top int64
}

func (p *heapPeak) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin = heap()
}

func (p *heapPeak) measure() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.top = max(p.top, heap()-p.begin)
}

func (p *heapPeak) maxGrowth() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.top
}

// largeTypeServer serves a type of many objects without storing them. It measures the heap when the client
// has read the last object but not the end of the list.
type largeTypeServer struct {
	watchLists bool
	peak       *heapPeak
}

func (l largeTypeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	query := r.URL.Query()
	switch {
	case query.Get("sendInitialEvents") != "":
		if !l.watchLists {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		l.write(w, `{"type":"ADDED","object":`, "}\n")
		fmt.Fprintln(
			w, `{"type":"BOOKMARK","object":{"apiVersion":"example.com/v1","kind":"Widget","metadata":`+
				`{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}`)
	case query.Get("watch") == "":
		fmt.Fprint(
			w, `{"apiVersion":"example.com/v1","kind":"WidgetList","metadata":{"resourceVersion":"9"},"items":[`)
		l.write(w, "", ",")
		fmt.Fprint(w, strings.TrimSuffix(largeWidget(manyObjects), ",")+"]}")
		return
	}
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func (l largeTypeServer) write(w http.ResponseWriter, before, after string) {
	l.peak.start()
	for n := range manyObjects {
		fmt.Fprint(w, before, largeWidget(n), after)
	}
	_ = http.NewResponseController(w).Flush()
	synctest.Wait() // A client that is still reading would allocate garbage.
	l.peak.measure()
}

// largeWidget returns an object; a tenth of its text is unique.
func largeWidget(n int) string {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	var own strings.Builder
	for own.Len() < objectBytes/10 {
		fmt.Fprintf(&own, "%016x", r.Uint64())
	}
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w%d","namespace":"web",`+
		`"resourceVersion":"7"},"spec":{"own":%q,"common":%q}}`, n, own.String(),
		strings.Repeat("common text; ", objectBytes*9/10/13))
}

// TestMemoryBudgetHoldsWhileListing verifies that the live heap stays in the budget just before the list is
// complete and, with a transform, while the list is stored.
func TestMemoryBudgetHoldsWhileListing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	transform := func(p *heapPeak) cache.TransformFunc {
		calls := 0
		return func(obj any) (any, error) {
			if calls++; calls%manyObjects == 0 {
				p.measure()
			}
			return obj, nil
		}
	}
	compressed := Storage{Mode: StorageCompressed, Compression: adaptive.Compression}
	tests := map[string]struct {
		watchLists bool
		storage    Storage
		transform  func(*heapPeak) cache.TransformFunc
	}{
		"watch-list":                 {watchLists: true, storage: adaptive},
		"watch-list, with transform": {watchLists: true, storage: adaptive, transform: transform},
		"list":                       {storage: adaptive},
		"list, with transform":       {storage: adaptive, transform: transform},
		"list, always compressed":    {storage: compressed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				p := &heapPeak{}
				server.Server.Config.Handler = largeTypeServer{watchLists: tt.watchLists, peak: p}
				options := ResourceOptions{Storage: tt.storage}
				if tt.transform != nil {
					options.Transform = tt.transform(p)
				}
				f := newVirtualFactory(t, server, Options{MemoryBudget: memoryBudget, Defaults: options})
				i := mustInformer(t, f, widgets)
				must(t, f.Start(t.Context()))
				// synctest.Wait is not possible here, because the server calls it.
				must(t, f.WaitForSync(longContext(t)))
				if count := len(i.Snapshot().Keys()); count < manyObjects {
					t.Errorf("%d objects, want at least %d", count, manyObjects)
				}
				// The heap also contains the buffers of the stream, the first MB of the list and
				// the dictionary.
				const buffers = 4 << 20
				t.Logf("the live heap grew by %d KB", p.maxGrowth()>>10)
				if most := int64(memoryBudget + buffers); p.maxGrowth() > most {
					t.Errorf("the live heap grew by %d bytes, want at most %d", p.maxGrowth(), most)
				}
				runtime.KeepAlive(i)
			})
		})
	}
}

// largeObjects and largeBody are the number and size of the objects in TestKeysOwnTheirMemory, 40 MB in
// total.
const (
	largeObjects = 2000
	largeBody    = 20 << 10
)

// large returns many large objects. Half of them have no namespace, so their keys are their names.
func large() []any {
	body := strings.Repeat("x", largeBody)
	all := make([]any, largeObjects)
	for n := range all {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1",
			"kind": "Widget", "spec": body}}
		u.SetName(fmt.Sprint("w", n))
		u.SetUID("u")
		u.SetResourceVersion("7")
		u.SetLabels(map[string]string{"color": fmt.Sprint("red", n)})
		if n%2 == 0 {
			u.SetNamespace("web")
		}
		all[n] = u
	}
	return all
}

// heap returns the memory in use after a garbage collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestKeysOwnTheirMemory retains keys and metadata that reads returned, and deletes the objects. The
// memory of the objects must be freed.
func TestKeysOwnTheirMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	reads := map[string]func(t *testing.T, i *Informer) any{
		"ListKeys": func(_ *testing.T, i *Informer) any { return i.GetIndexer().ListKeys() },
		"IndexKeys": func(t *testing.T, i *Informer) any {
			var all [][]string
			for _, namespace := range i.GetIndexer().ListIndexFuncValues(cache.NamespaceIndex) {
				keys, err := i.GetIndexer().IndexKeys(cache.NamespaceIndex, namespace)
				must(t, err)
				all = append(all, keys)
			}
			return all
		},
		"Snapshot.Keys": func(_ *testing.T, i *Informer) any { return i.Snapshot().Keys() },
		"Snapshot.KeysByIndex": func(t *testing.T, i *Informer) any {
			keys, err := i.Snapshot().KeysByIndex("a", "a")
			must(t, err)
			return keys
		},
		"Snapshot.All": func(_ *testing.T, i *Informer) any {
			var all []string
			for key := range i.Snapshot().All() {
				all = append(all, key)
			}
			return all
		},
		"Snapshot.AllJSON": func(t *testing.T, i *Informer) any {
			var all []string
			must(t, i.Snapshot().AllJSON(func(key string, _ []byte) error {
				all = append(all, key)
				return nil
			}))
			return all
		},
		"metadata": func(t *testing.T, i *Informer) any {
			var all []any
			for _, object := range i.Snapshot().AllStored() {
				m, err := meta.Accessor(object)
				must(t, err)
				key, err := cache.MetaNamespaceKeyFunc(object)
				must(t, err)
				all = append(all, m.GetName(), m.GetNamespace(), m.GetUID(), m.GetResourceVersion(),
					m.GetLabels(), key)
			}
			return all
		},
	}
	for name, read := range reads {
		t.Run(name, func(t *testing.T) {
			i := newStoredInformer(t, Storage{})
			must(t, i.GetIndexer().Replace(large(), "7"))
			full := heap()
			result := read(t, i)
			must(t, i.GetIndexer().Replace(nil, "8"))
			if freed, minimum := full-heap(), int64(largeObjects*largeBody*9/10); freed < minimum {
				t.Errorf("%d bytes were freed, want at least %d", freed, minimum)
			}
			runtime.KeepAlive(result)
			runtime.KeepAlive(i)
		})
	}
}
