package dynamicinformer

import (
	"fmt"
	"testing"
	"time"

	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/storage/s2"
)

// TestSavesAreNoReads: what is saved counts as read no more than before, or adaptive storage would take
// everything that changes for in use.
func TestSavesAreNoReads(t *testing.T) {
	server, s := newServer(t), newShelf()
	count := manyWidgets(t, server)
	f := newFactory(t, server, Options{Persistence: s, PersistenceInterval: time.Millisecond,
		Defaults: ResourceOptions{Storage: adaptive}})
	i := synced(t, f)
	must(t, i.Compress(t.Context()))
	server.Create(t, widgets, widgetWithColor("web", "later", "red"))
	await(t, func() bool { return i.Persistence().Checkpoint.Objects == count+1 })
	for key, item := range i.core.Snapshot().All {
		if item.(*packed.Object).Usage().Read {
			t.Fatalf("%s counts as read", key)
		}
	}
}

// TestSavedIsNotHeld: what was saved is not held in memory once the cache is not kept any more.
func TestSavedIsNotHeld(t *testing.T) {
	server, s := newServer(t), newShelf()
	server.Create(t, widgets, widget("a", "one"))
	f := newFactory(t, server, Options{Persistence: s, PersistenceInterval: time.Millisecond})
	i := synced(t, f)
	holds := func() bool {
		held, err := i.persister.SavedInMemory(t.Context())
		must(t, err)
		return held
	}
	await(t, holds)
	must(t, i.GetStore().Delete(widget("a", "one")))
	await(t, func() bool { return !holds() })
}

// TestReplacedBlocksAreGivenUp: objects that came in blocks do not keep what they came with, once most of
// that has been replaced.
func TestReplacedBlocksAreGivenUp(t *testing.T) {
	for name, storage := range map[string]Storage{
		"compressed": {Mode: StorageCompressed, Compression: s2.New(s2.Options{})}, "adaptive": adaptive,
	} {
		t.Run(name, func(t *testing.T) {
			server, s := newServer(t), newShelf()
			options := ResourceOptions{Storage: storage}
			count := manyWidgets(t, server)
			persistWidgets(t, server, s, options)
			f := newFactory(t, server, Options{Persistence: s, PersistenceInterval: time.Millisecond,
				Defaults: options})
			i := synced(t, f)
			inBlocks := func() (objects int) {
				for _, item := range i.core.Snapshot().All {
					if item.(*packed.Object).Block() != nil {
						objects++
					}
				}
				return objects
			}
			if n := inBlocks(); n != count {
				t.Fatalf("%d objects are in blocks", n)
			}
			for n := range count {
				if n%50 != 0 {
					server.Update(t, widgets, widgetWithColor("web", fmt.Sprint("w", n), "blue"))
				}
			}
			await(t, func() bool { // the last change comes last
				item, _ := i.core.Snapshot().Get(fmt.Sprint("web/w", count-1))
				return item.(*packed.Object).GetLabels()["color"] == "blue" && inBlocks() == 0
			})
			r := &resumedInformer{Informer: i, factory: f, server: server, diary: &diary{}}
			r.check(t)
			if stats := i.Stats(); stats.Objects != count {
				t.Errorf("%+v", stats)
			}
		})
	}
}
