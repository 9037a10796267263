package store

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/packed"
)

// TestDifferences covers arbitrary replacements, including writes after a batch was prepared and duplicate
// keys.
func TestDifferences(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	content := func() (list []Keyed) {
		for range r.IntN(200) {
			n := r.IntN(100)
			list = append(list, Keyed{Key: fmt.Sprint("ns/o", n), Item: fmt.Sprint(n, "/", r.IntN(2))})
		}
		return list
	}
	for range 300 {
		s := New(Options{})
		if _, ok := s.Replace(s.PrepareAll(content()), "1"); !ok {
			t.Fatal("Replace() = false, want true")
		}
		list := content()
		if r.IntN(2) == 0 { // list the stored items
			list = nil
			for key, item := range s.Snapshot().All {
				list = append(list, Keyed{Key: key, Item: item})
			}
		}
		batch := s.PrepareAll(list)
		if r.IntN(3) == 0 {
			s.Put(s.Prepare(Keyed{Key: fmt.Sprint("ns/o", r.IntN(120)), Item: "later"}))
		}
		before := contentOf(s.Snapshot())
		d, ok := s.Replace(batch, "2")
		if !ok {
			t.Fatal("Replace() = false, want true")
		}
		var want []Change
		after := contentOf(s.Snapshot())
		for key, item := range before {
			if _, stays := after[key]; !stays {
				want = append(want, Change{Key: key, Old: item})
			}
		}
		removed := len(want)
		for key, item := range after {
			want = append(want, Change{Key: key, Old: before[key], New: item})
		}
		if d.Len() != len(want) {
			t.Fatalf("%d differences, want %d", d.Len(), len(want))
		}
		got := map[string]Change{}
		for n := range d.Len() {
			c := d.At(n)
			if (c.New == nil) != (n < removed) {
				t.Fatalf("difference %d of %d, of which the first %d are deletions: got %v", n, d.Len(),
					removed, c)
			}
			got[c.Key] = c
		}
		for _, c := range want {
			if diff := cmp.Diff(c, got[c.Key]); diff != "" {
				t.Fatalf("difference of %s (-want +got):\n%s", c.Key, diff)
			}
		}
	}
}

func contentOf(s *Snapshot) map[string]Item {
	all := map[string]Item{}
	for key, item := range s.All {
		all[key] = item
	}
	return all
}

// TestRelistsNeedLittleMemory limits the memory that a relist allocates in addition to the objects. It counts
// all allocations, because the garbage may not have been collected at the peak.
func TestRelistsNeedLittleMemory(t *testing.T) {
	const objects = 20_000
	s := New(Options{Format: NewPacked(nil, nil),
		Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}})
	list := make([]Keyed, objects)
	for n := range list {
		o, err := packed.NewPacker(nil).Pack(fmt.Appendf(nil,
			`{"apiVersion":"v1","kind":"A","metadata":{"namespace":"ns-%d","name":"object-%d","uid":"%d"}}`,
			n/100, n, n))
		if err != nil {
			t.Fatal(err)
		}
		list[n] = Keyed{Key: o.Key(), Item: o}
	}
	at := func(n int) Keyed { return list[n] }
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
