package store

import (
	"fmt"
	"runtime"
	"testing"

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
		if err != nil {
			t.Fatal(err)
		}
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
	if each := (after.TotalAlloc - before.TotalAlloc) / objects; !ok || each > 110 {
		t.Errorf("a relist allocates %d bytes per object, want at most 110", each)
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
