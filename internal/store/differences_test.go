package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/packed"
)

// TestRelistsNeedLittleMemory limits the memory that a relist allocates in addition to the objects. It counts
// all allocations, because the garbage may not have been collected at the peak.
func TestRelistsNeedLittleMemory(t *testing.T) {
	const objects = 20_000
	s := New(Options{Format: NewPacked(nil, nil),
		Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}})
	list := make([]KeyedItem, objects)
	for n := range list {
		o, err := packed.NewPacker(nil).Pack(fmt.Appendf(nil,
			`{"apiVersion":"v1","kind":"A","metadata":{"namespace":"ns-%d","name":"object-%d","uid":"%d"}}`,
			n/100, n, n))
		must(t, err)
		list[n] = KeyedItem{Key: o.Key(), Item: o}
	}
	at := func(n int) KeyedItem { return list[n] }
	if _, ok := s.Replace(s.PrepareList(objects, at), "1"); !ok {
		t.Fatal("Replace() = false, want true")
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d, ok := s.Replace(s.PrepareList(objects, at), "2")
	for n := range d.Len() {
		if c := d.At(n); c.Old != c.New {
			t.Fatalf("difference %d: got %v, want equal items", n, c)
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / objects; !ok || each > 30 {
		t.Errorf("a relist allocates %d bytes per object, want at most 30", each)
	}
	runtime.KeepAlive(list)
}

// TestRelistsReuseObjects checks that a relist reuses stored packed objects.
func TestRelistsReuseObjects(t *testing.T) {
	format := NewPacked(managedFieldsPruner(t), nil)
	s := New(Options{Format: format, Indexers: byNamespace()})
	replaceAll(t, s, 100, 1)
	for n := range 100 {
		keyed := keyedCertificate(t, format, n, 1)
		if had, _ := s.Snapshot().Get(keyed.Key); keyed.Item != had {
			t.Fatalf("a relist with the same text replaced the item of %s", keyed.Key)
		}
	}
	changed := keyedCertificate(t, format, 7, 2)
	if had, _ := s.Snapshot().Get(changed.Key); changed.Item == had {
		t.Error("a relist with a new version kept the old item")
	}
}

// TestDiff compares Diff in a random history with maps.
func TestDiff(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, keys := range []int{3, 30, 300, 3000} {
		s := New(Options{})
		model := map[string]Item{}
		for round := range 60 {
			before, previousKeys := s.Snapshot(), maps.Clone(model)
			changedKeys := map[string]bool{}
			for range random.IntN(keys) + 1 {
				key := fmt.Sprint("ns/", random.IntN(keys))
				changedKeys[key] = true
				if random.IntN(3) == 0 {
					s.Remove(key, "")
					delete(model, key)
					continue
				}
				item := &thing{key: key, number: round}
				s.Put(s.Prepare(KeyedItem{Key: key, Item: item}))
				model[key] = item
			}
			if round%7 == 6 { // a list, which shares no nodes
				var all []KeyedItem
				for key, item := range model {
					all = append(all, KeyedItem{Key: key, Item: item})
					changedKeys[key] = true
				}
				s.Replace(s.PrepareAll(all), "")
			}
			s.Snapshot().Diff(before, func(key string, old, next Item) bool {
				if !changedKeys[key] {
					t.Fatalf("%d keys: Diff yields the unchanged key %s", keys, key)
				}
				if old != previousKeys[key] {
					t.Fatalf("%d keys: Diff yields the wrong old item for %s", keys, key)
				}
				if previousKeys[key] = next; next == nil {
					delete(previousKeys, key)
				}
				return true
			})
			if diff := cmp.Diff(len(model), len(previousKeys)); diff != "" || !maps.Equal(model, previousKeys) {
				t.Fatalf("%d keys, round %d: applying the changes (-want +got):\n%s", keys, round, diff)
			}
		}
	}
}

// TestDiffStops stops the iteration early.
func TestDiffStops(t *testing.T) {
	s := New(Options{})
	before := s.Snapshot()
	for k := range 100 {
		s.Put(s.Prepare(KeyedItem{Key: fmt.Sprint(k), Item: &thing{}}))
	}
	for _, way := range []func(func(string, Item, Item) bool){
		func(changed func(string, Item, Item) bool) { s.Snapshot().Diff(before, changed) },
		func(changed func(string, Item, Item) bool) { before.Diff(s.Snapshot(), changed) },
	} {
		reported := 0
		way(func(string, Item, Item) bool {
			reported++
			return reported < 5
		})
		if reported != 5 {
			t.Errorf("Diff yielded %d changes, want 5", reported)
		}
	}
}
