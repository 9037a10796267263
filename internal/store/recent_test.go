package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
)

// versionOf returns the version that keyedCertificate was called with.
func versionOf(t testing.TB, object any) int64 {
	t.Helper()
	version, err := strconv.ParseInt(object.(*unstructured.Unstructured).GetResourceVersion(), 10, 64)
	must(t, err)
	return version - 1_000_000
}

// TestReadsAreCurrent changes an object in all ways while others read it. A read returns a version that was
// current at a moment between its start and its end, and never an older one than the read before it.
func TestReadsAreCurrent(t *testing.T) {
	const versions = 2000
	for name, format := range formats(t) {
		t.Run(name, func(t *testing.T) {
			s := New(Options{Format: format})
			replaceAll(t, s, 1, 0)
			const key = "tenant-0/certificate-0"
			var startedVersion, storedVersion atomic.Int64
			var readers sync.WaitGroup
			for range 3 {
				readers.Go(func() {
					last := int64(0)
					for last < versions {
						from := max(storedVersion.Load(), last)
						object, exists := s.Object(key)
						if !exists {
							continue
						}
						if last = versionOf(t, object); last < from || last > startedVersion.Load() {
							t.Errorf("got version %d, want one between %d and %d", last, from, startedVersion.Load())
							return
						}
					}
				})
			}
			r := rand.New(rand.NewPCG(1, 2))
			for version := range versions {
				startedVersion.Store(int64(version) + 1)
				next := keyedCertificate(t, format, 0, version+1)
				switch r.IntN(10) {
				case 0:
					s.Replace(s.PrepareAll([]KeyedItem{next}), "")
				case 1:
					s.Remove(key, "")
					fallthrough
				default:
					s.Put(s.Prepare(next))
				}
				storedVersion.Store(int64(version) + 1)
			}
			readers.Wait()
		})
	}
}

// TestRecentReads reads more objects than the table of recent reads can hold.
func TestRecentReads(t *testing.T) {
	const count = 4 * recentSets * recentWays
	format := NewPacked(managedFieldsPruner(t), nil)
	s := New(Options{Format: format})
	replaceAll(t, s, count, 1)
	reads := int64(0)
	for range 5 {
		for n := range count {
			key := fmt.Sprintf("tenant-%d/certificate-%d", n%100, n)
			object, exists := s.Object(key)
			item, _ := s.Snapshot().Get(key)
			if reads++; !exists || object != format.PeekObject(item) {
				t.Fatalf("Object(%s) = %v, %v, want the object", key, object, exists)
			}
			runtime.KeepAlive(object)
		}
	}
	if hits, misses := s.Decodes(); hits+misses != 2*reads { // PeekObject counts, too
		t.Errorf("%d hits and %d misses, want %d in total", hits, misses, 2*reads)
	}
	if _, exists := s.Object("tenant-1/certificate-0"); exists {
		t.Error("Object() found an unknown key")
	}
}

// TestRecentReadsExpire verifies that decoded copies are freed when they are no longer read.
func TestRecentReadsExpire(t *testing.T) {
	s := New(Options{Format: NewPacked(nil, nil)})
	replaceAll(t, s, 1, 1)
	const key = "tenant-0/certificate-0"
	read := func() {
		object, _ := s.Object(key)
		again, _ := s.Object(key)
		s.Object(key)
		if object != again {
			t.Error("two reads returned different copies")
		}
		runtime.KeepAlive(object)
	}
	for range 3 {
		read()
		if s.recent.Load().find(hashOf(key), key) == nil {
			t.Fatal("the read is not in the table of recent reads")
		}
		for s.lookup(key).Decoded() != nil { // freed by a collection after the cleanup
			runtime.GC()
		}
	}
}

// TestPairCounts reads an object before and after an update, first decoding and then from memory.
func TestPairCounts(t *testing.T) {
	format := NewPacked(nil, nil)
	before, after := keyedCertificate(t, format, 1, 1).Item, keyedCertificate(t, format, 1, 2).Item
	previous, current := format.Pair(before, after)
	if hits, misses := format.Decodes(); hits != 0 || misses != 2 {
		t.Errorf("%d hits and %d misses, want 0 and 2", hits, misses)
	}
	for range 2 {
		if old, new := format.Pair(before, after); old != previous || new != current {
			t.Error("Pair decoded the objects again")
		}
	}
	if hits, misses := format.Decodes(); hits != 4 || misses != 2 {
		t.Errorf("%d hits and %d misses, want 4 and 2", hits, misses)
	}
	odd := &unstructured.Unstructured{}
	if old, new := format.Pair(odd, after); old != any(odd) || new != current {
		t.Error("Pair did not return the unpacked item unchanged")
	}
	runtime.KeepAlive([]any{previous, current})
}

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
