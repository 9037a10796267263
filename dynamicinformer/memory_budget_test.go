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
