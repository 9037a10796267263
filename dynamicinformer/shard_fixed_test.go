package dynamicinformer

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestHistoryOfFixedShard keeps the history of a part that never changes, on a server that sends everything, and of no other.
func TestHistoryOfFixedShard(t *testing.T) {
	virtual(t, func(t *testing.T, server *apitest.Server) {
		for k := range quarters {
			server.Create(t, widgets, inShard(fmt.Sprint("x", k), k))
		}
		shard := NewFixedShard(ShardByUID, quarters[1])
		f := newVirtualFactory(t, server, Options{Defaults: ResourceOptions{Shard: shard}})
		i := ask(t, f, widgets)
		if err := i.KeepHistory(10); err != nil {
			t.Fatal(err)
		}
		other, err := f.Acquire(widgets, ResourceOptions{Shard: NewShard(ShardByUID, quarters[1])})
		if err != nil {
			t.Fatal(err)
		}
		if other.Informer().KeepHistory(10) == nil {
			t.Error("a shard that may change keeps a history")
		}
		start(t, f)
		synctest.Wait()
		for k := range quarters {
			u := inShard(fmt.Sprint("x", k), k)
			u.SetLabels(map[string]string{"touched": "true"})
			server.Update(t, widgets, u)
		}
		shard.SetRanges(quarters...)
		synctest.Wait()
		h := i.History()
		if h.Shard != shard || h.Len() != 1 || h.At(0).Key != "ns/x1" || !slices.Equal(keysOf(i), []string{"ns/x1"}) {
			t.Errorf("the history is of %v with %d changes, the cache has %q", h.Shard, h.Len(), keysOf(i))
		}
	})
}
