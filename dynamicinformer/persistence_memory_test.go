package dynamicinformer

import (
	"testing"
	"time"

	"github.com/crdcache/crdcache/internal/packed"
)

// TestSavesAreNoReads: what is saved counts as read no more than before, or adaptive storage would take everything that
// changes for in use.
func TestSavesAreNoReads(t *testing.T) {
	server, s := newServer(t), newShelf()
	count := manyWidgets(t, server)
	f := newFactory(t, server, Options{Persistence: s, PersistenceInterval: time.Millisecond, Defaults: ResourceOptions{Storage: adaptive}})
	i := synced(t, f)
	must(t, i.Compress(t.Context()))
	server.Create(t, widgets, painted("web", "later", "red"))
	await(t, func() bool { return i.Persistence().Checkpoint.Objects == count+1 })
	for key, item := range i.core.Snapshot().All {
		if item.(*packed.Object).Use().Read {
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
		held := false
		must(t, i.keeper.do(t.Context(), func() { held = i.keeper.mine.saved != nil }))
		return held
	}
	await(t, holds)
	must(t, i.GetStore().Delete(widget("a", "one")))
	await(t, func() bool { return !holds() })
}
