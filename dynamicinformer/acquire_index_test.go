package dynamicinformer

import (
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

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
			return ResourceOptions{Indexes: gatedIndex{"x",
				gate}}
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
