package store

import (
	"maps"
	"slices"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
)

// panicIndexFunc returns an index function that panics for the thing with the key.
func panicIndexFunc(key string) cache.IndexFunc {
	return func(obj any) ([]string, error) {
		if obj.(*thing).key == key {
			panic("trouble")
		}
		return byTags(obj)
	}
}

// TestAddIndexersThatPanic checks that a recovered panic has no effect on the store.
func TestAddIndexersThatPanic(t *testing.T) {
	store := newStore(t, cache.Indexers{"tags": byTags})
	store.Put(store.Prepare((&thing{key: "bad", tags: []string{"x"}}).keyed()))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("AddIndexers recovered the panic of an index function")
			}
		}()
		_ = store.AddIndexers(cache.Indexers{"more": panicIndexFunc("bad"), "other": byParity})
	}()
	store.Put(store.Prepare((&thing{key: "bad", tags: []string{"y"}}).keyed())) // would panic, too
	if err := store.AddIndexers(cache.Indexers{"more": byTags, "other": byParity}); err != nil {
		t.Error(err)
	}
	if keys, err := store.Snapshot().KeysByIndex("more", "y"); err != nil ||
		!slices.Equal(keys, []string{"bad"}) {
		t.Errorf("KeysByIndex() = %v, %v, want [bad]", keys, err)
	}
}

// TestPanicsOfIndexFunctions checks that a panic affects one index of one object if the process survives
// panics. It changes process-wide settings and therefore does not run in parallel.
func TestPanicsOfIndexFunctions(t *testing.T) {
	crash := utilruntime.ReallyCrash
	t.Cleanup(func() { utilruntime.ReallyCrash = crash })
	utilruntime.ReallyCrash = false
	var failed []string
	store := New(Options{Indexers: cache.Indexers{"first": panicIndexFunc("bad"), "tags": byTags},
		Report: func(f Failures) {
			failed = append(failed, slices.Sorted(maps.Keys(f))...)
		}})
	good, bad := &thing{key: "good", tags: []string{"x"}}, &thing{key: "bad", tags: []string{"x"}}
	batch := store.PrepareAll([]KeyedItem{bad.keyed(), good.keyed()})
	if _, ok := store.Replace(batch, "1"); !ok {
		t.Fatal("Replace() = false, want true")
	}
	if err := store.AddIndexers(cache.Indexers{"late": panicIndexFunc("bad")}); err != nil {
		t.Error(err)
	}
	for name, want := range map[string][]string{"first": {"good"}, "late": {"good"},
		"tags": {"bad", "good"}} {
		if keys, err := store.Snapshot().KeysByIndex(name, "x"); err != nil || !slices.Equal(keys, want) {
			t.Errorf("index %s has %v, %v, want %v", name, keys, err, want)
		}
	}
	if want := []string{"first", "late"}; !slices.Equal(failed, want) {
		t.Errorf("reported %v, want %v", failed, want)
	}
}
