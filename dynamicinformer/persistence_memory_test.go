package dynamicinformer

import (
	"fmt"
	"testing"
	"time"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/internal/packed"
)

// TestSavedContentIsNotRetained verifies that saved content is not retained in memory after the cache is
// dropped.
func TestSavedContentIsNotRetained(t *testing.T) {
	server, s := newServer(t), newMemoryBackend()
	server.Create(t, widgets, widget("a", "one"))
	f := newFactory(t, server, Options{Persistence: s, PersistenceInterval: time.Millisecond})
	i := startSynced(t, f)
	holds := func() bool {
		held, err := i.persister.SavedInMemory(t.Context())
		must(t, err)
		return held
	}
	await(t, holds)
	must(t, i.GetStore().Delete(widget("a", "one")))
	await(t, func() bool { return !holds() })
}

// TestReplacedBlocksAreFreed verifies that objects do not retain their block after most of it has been
// replaced.
func TestReplacedBlocksAreFreed(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for name, storage := range map[string]Storage{
		"compressed": {Mode: StorageCompressed, Compression: s2.New(s2.Options{})}, "adaptive": adaptive,
	} {
		t.Run(name, func(t *testing.T) {
			server, s := newServer(t), newMemoryBackend()
			options := ResourceOptions{Storage: storage}
			count := manyWidgets(t, server)
			persistWidgets(t, server, s, options)
			f := newFactory(t, server, Options{Persistence: s, PersistenceInterval: time.Millisecond,
				Defaults: options})
			i := startSynced(t, f)
			inBlocks := func() (objects int) {
				for _, item := range i.core.Snapshot().All {
					if item.(*packed.Object).Block() != nil {
						objects++
					}
				}
				return objects
			}
			if n := inBlocks(); n != count {
				t.Fatalf("%d objects are in blocks, want all", n)
			}
			for n := range count {
				if n%50 != 0 {
					server.Update(t, widgets, widgetWithColor("web", fmt.Sprint("w", n), "blue"))
				}
			}
			await(t, func() bool { // events arrive in order
				item, _ := i.core.Snapshot().Get(fmt.Sprint("web/w", count-1))
				return item.(*packed.Object).GetLabels()["color"] == "blue" && inBlocks() == 0
			})
			r := &resumedInformer{Informer: i, factory: f, server: server, diary: &eventLog{}}
			r.check(t)
			if stats := i.Stats(); stats.Objects != count {
				t.Errorf("Stats() = %+v, want %d objects", stats, count)
			}
		})
	}
}
