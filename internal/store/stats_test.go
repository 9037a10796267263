package store

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/packed"
)

// heap returns the size of the reachable heap.
func heap() int64 {
	var stats runtime.MemStats
	for range 3 { // weak pointers and pools need several collections
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func withIndexes(more cache.Indexers) cache.Indexers {
	all := byNamespace()
	maps.Copy(all, more)
	return all
}

// sortedByUID is an Extractor of one index.
type sortedByUID struct{}

func (sortedByUID) Names() []string          { return []string{"sorted"} }
func (sortedByUID) Ordered(int) bool         { return true }
func (sortedByUID) Indexers() cache.Indexers { return cache.Indexers{"sorted": byUID} }

func (sortedByUID) KeysJSON(json []byte, keys [][]string) [][]string {
	_, after, _ := strings.Cut(string(json), `"uid":"`)
	uid, _, _ := strings.Cut(after, `"`)
	return append(keys, []string{strings.Clone(uid)})
}

// TestStatsAgreeWithTheHeap fills stores of all formats and compares Stats with the growth of the heap, and
// with the documented limits per object.
func TestStatsAgreeWithTheHeap(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const objects = 5000
	mostPerIdentity := int64(80)
	if !hasIdentityRows {
		mostPerIdentity = 320
	}
	for _, tc := range []struct {
		name     string
		format   Format
		indexers cache.Indexers
		sorted   bool  // with a sorted index by UID
		most     int64 // documented limit in bytes per object; 0 if there is none
	}{
		{name: "packed", format: NewPacked(managedFieldsPruner(t), nil), indexers: byNamespace(), most: 1500},
		{name: "packed, everything", format: NewPacked(nil, nil), indexers: cache.Indexers{}, most: 2500},
		{name: "packed, with indexes", format: NewPacked(managedFieldsPruner(t), nil),
			indexers: withIndexes(cache.Indexers{"uid": byUID, "app": byApp})},
		{name: "packed, with an order", format: NewPacked(managedFieldsPruner(t), nil),
			indexers: byNamespace(), sorted: true},
		{name: "compressed", format: NewPacked(managedFieldsPruner(t), s2.New()),
			indexers: byNamespace(), most: 600},
		{name: "adaptive", format: NewAdaptive(managedFieldsPruner(t), s2.New()),
			indexers: byNamespace(), most: 600},
		{name: "adaptive, everything", format: NewAdaptive(nil, s2.New()),
			indexers: byNamespace(), most: 600},
		{name: "metadata", format: NewMetadata(managedFieldsPruner(t)), indexers: byNamespace(), most: 800},
		{name: "none", format: NewIdentities(nil), indexers: cache.Indexers{}, most: mostPerIdentity},
		{name: "object", format: Objects(managedFieldsPruner(t)),
			indexers: withIndexes(cache.Indexers{"uid": byUID})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := New(Options{Format: tc.format, Indexers: tc.indexers})
			if tc.sorted {
				must(t, s.AddExtractor(sortedByUID{}))
			}
			replaceAll(t, s, 100, 0) // one-time allocations
			replaceAll(t, s, 0, 0)
			before := heap()
			replaceAll(t, s, objects, 1)
			if s.Adaptive() != nil {
				sweepAll(s, SweepAfterFill) // the first objects train the compressor
				sweepAll(s, SweepAfterFill)
			}
			grown := heap() - before
			stats := s.Stats()
			t.Logf("%d B of heap per object, %d B by %+v", grown/objects, stats.Bytes()/objects, stats)
			if size := stats.Bytes(); size < grown*9/10 || size > grown*11/10 {
				t.Errorf("Stats().Bytes() = %d, want the growth of the heap, %d, within 10%%", size, grown)
			}
			if per := grown / objects; tc.most > 0 && per > tc.most {
				t.Errorf("an object needs %d bytes, more than the documented %d", per, tc.most)
			}
			if stats.Objects != objects {
				t.Errorf("Stats().Objects = %d, want %d", stats.Objects, objects)
			}
			runtime.KeepAlive(s)
		})
	}
}

// TestIndexesAreLean compares an index of unique values, and one of few values, with client-go's.
func TestIndexesAreLean(t *testing.T) {
	const objects = 10_000
	list := make([]*unstructured.Unstructured, objects)
	for n := range list {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetName(fmt.Sprint("certificate-", n))
		u.SetNamespace(fmt.Sprint("tenant-", n%100))
		u.SetUID(types.UID(certificateUID(n)))
		u.SetLabels(map[string]string{"app.kubernetes.io/name": fmt.Sprint("app-", n%10)})
		list[n] = u
	}
	for name, index := range map[string]cache.IndexFunc{"many values": byUID, "few values": byApp} {
		t.Run(name, func(t *testing.T) {
			clientGoStore := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
			crdcacheStore := New(Options{})
			for _, u := range list {
				must(t, clientGoStore.Add(u))
				key := u.GetNamespace() + "/" + u.GetName()
				if _, ok := crdcacheStore.Put(crdcacheStore.Prepare(KeyedItem{Key: key,
					Item: u})); !ok {
					t.Fatal("Put() = false, want true")
				}
			}
			grown := func(add func(cache.Indexers) error) int64 {
				before := heap()
				must(t, add(cache.Indexers{"index": index}))
				return heap() - before
			}
			their, our := grown(clientGoStore.AddIndexers), grown(crdcacheStore.AddIndexers)
			t.Logf("%d B per object, client-go %d B", our/objects, their/objects)
			if 2*our > their {
				t.Errorf("the index takes %d bytes, more than half of client-go's %d", our, their)
			}
			runtime.KeepAlive(clientGoStore)
			runtime.KeepAlive(crdcacheStore)
		})
	}
}

// TestStatsAreAccurate compares Stats with the sizes of all parts, after a list and after many changes.
func TestStatsAreAccurate(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for name, format := range map[string]func() Format{
		"packed":     func() Format { return NewPacked(managedFieldsPruner(t), nil) },
		"compressed": func() Format { return NewPacked(managedFieldsPruner(t), s2.New()) },
		"metadata":   func() Format { return NewMetadata(nil) },
		"object":     func() Format { return Objects(nil) },
	} {
		for _, objects := range []int{0, 1, 10, 400, 1_500} {
			t.Run(fmt.Sprint(name, " ", objects), func(t *testing.T) {
				s := New(Options{Format: format(),
					Indexers: withIndexes(cache.Indexers{"uid": byUID, "app": byApp})})
				must(t, s.AddExtractor(sortedByUID{}))
				replaceAll(t, s, objects, 1)
				compareWithExactStats(t, s)
				random := rand.New(rand.NewPCG(1, 2))
				for k := range objects {
					n := random.IntN(2 * objects)
					o := keyedCertificate(t, s.format, n, 10+k)
					if n%3 == 0 {
						s.Remove(o.Key, o.ResourceVersion)
					} else if _, ok := s.Put(s.Prepare(o)); !ok {
						t.Fatal("Put() = false, want true")
					}
				}
				compareWithExactStats(t, s)
			})
		}
	}
}

// exactStats returns the Stats of a store by visiting each object and each entry of an index.
func exactStats(s *Store) Stats {
	current := s.current.Load()
	stats := Stats{Stats: status.Stats{Objects: current.rows.len, TableBytes: trieBytes(&current.rows)}}
	shared, valueBytes := map[*byte]bool{}, map[int]int64{}
	var decoded packed.DecodedSize
	for r := range current.rows.all {
		stats.TableBytes += rowBytes(r)
		if o := r.object.Load(); o == nil {
			decoded.Add(r.unpacked.(*unstructured.Unstructured).Object)
		} else {
			size := int64(o.Size())
			stats.ObjectBytes += size
			if o.Compressed() {
				stats.Compressed++
				stats.CompressedBytes += size
			}
		}
		vs := r.values()
		if at := unsafe.StringData(string(vs)); vs != "" && !shared[at] {
			shared[at] = true
			vs.addSizesTo(valueBytes)
		}
	}
	stats.ObjectBytes += decoded.Bytes
	for i := range current.indexes {
		x := &current.indexes[i]
		index := status.IndexStats{Name: x.function.name, Values: x.postings.len,
			Bytes: valueBytes[x.function.id] + trieBytes(&x.postings) + x.sortedValues.bytes()}
		for p := range x.postings.all {
			index.Entries += p.len()
			size := unsafe.Sizeof(*p)
			if rows := p.rowSet(); rows != nil {
				size = unsafe.Sizeof(manyPosting{})
				index.Bytes += trieBytes(rows)
			}
			index.Bytes += int64(packed.AllocationSize(int(size)))
			if x.function.byNamespace {
				index.Bytes += int64(packed.AllocationSize(len(p.value)))
			}
		}
		stats.Indexes = append(stats.Indexes, index)
	}
	return stats
}

func compareWithExactStats(t *testing.T, s *Store) {
	t.Helper()
	got, want := s.Stats(), exactStats(s)
	if got.Objects != want.Objects || got.Compressed != want.Compressed ||
		got.CompressedBytes != want.CompressedBytes || len(got.Indexes) != len(want.Indexes) {
		t.Errorf("Stats() = %+v, want %+v", got, want)
	}
	// With few objects, their different sizes matter.
	isNear := func(what string, got, want, percent int64) {
		t.Helper()
		if difference := max(got-want, want-got); difference*100 > want*percent {
			t.Errorf("%s: got %d bytes, want %d", what, got, want)
		}
	}
	for k, x := range want.Indexes {
		if m := got.Indexes[k]; m.Name != x.Name || m.Values != x.Values || m.Entries != x.Entries {
			t.Errorf("Stats().Indexes = %+v, want %+v", m, x)
		}
		isNear("index "+x.Name, got.Indexes[k].Bytes, x.Bytes, 25)
	}
	if _, packs := s.format.(*Packed); packs {
		isNear("objects", got.ObjectBytes, want.ObjectBytes, 0)
	} else {
		isNear("objects", got.ObjectBytes, want.ObjectBytes, 10)
	}
	isNear("the table", got.TableBytes, want.TableBytes, 10)
	isNear("indexes", got.Bytes()-got.ObjectBytes-got.TableBytes, want.Bytes()-want.ObjectBytes-want.TableBytes, 20)
}

type fixedExtractor struct{ names []string }

func (f *fixedExtractor) Names() []string  { return f.names }
func (f *fixedExtractor) Ordered(int) bool { return false }

func (f *fixedExtractor) Indexers() cache.Indexers {
	all := cache.Indexers{}
	for _, name := range f.names {
		all[name] = func(any) ([]string, error) { return []string{"a value of " + name}, nil }
	}
	return all
}

func (f *fixedExtractor) KeysJSON(_ []byte, keys [][]string) [][]string {
	for _, name := range f.names {
		keys = append(keys, []string{"a value of " + name})
	}
	return keys
}

// TestReloadsDoNotGrow checks that reloading a config often does not grow the memory of objects that
// never change.
func TestReloadsDoNotGrow(t *testing.T) {
	s := New(Options{Indexers: byNamespace(), Format: NewPacked(nil, nil),
		Extractors: []Extractor{&fixedExtractor{[]string{"a", "b"}}}})
	replaceAll(t, s, 10, 1)
	size := func() int {
		total := 0
		for r := range s.Snapshot().rows.all {
			total += len(r.values())
		}
		return total
	}
	before := size()
	for n := range 100 {
		must(t, s.AddExtractor(&fixedExtractor{[]string{"a", "b"}}, "a", "b"))
		name := fmt.Sprint("extra-", n)
		must(t, s.AddIndexers(cache.Indexers{name: byUID}))
		s.RemoveIndexes(name)
	}
	must(t, s.AddExtractor(&fixedExtractor{[]string{"a", "b"}}, "a", "b"))
	if after := size(); after > before+10*10 { // the varints of the functions' ids grow
		t.Errorf("the index values of 10 objects grew from %d to %d bytes", before, after)
	}
	for _, name := range []string{"a", "b"} {
		if keys, err := s.Snapshot().KeysByIndex(name, "a value of "+name); err != nil || len(keys) != 10 {
			t.Errorf("%d objects in index %s (%v), want 10", len(keys), name, err)
		}
	}
	replaceAll(t, s, 5, 2) // a list removes the values of dropped indexes
	for _, name := range []string{"a", "b"} {
		if keys, err := s.Snapshot().KeysByIndex(name, "a value of "+name); err != nil || len(keys) != 5 {
			t.Errorf("%d objects in index %s after the list (%v), want 5", len(keys), name, err)
		}
	}
}

// endingExtractor ends its addition after some objects.
type endingExtractor struct {
	fixedExtractor
	objects int
}

func (e *endingExtractor) CheckBuild() error {
	if e.objects--; e.objects == 0 {
		return errors.New("enough")
	}
	return nil
}

// TestBuildEnds verifies that an addition that is ended leaves nothing behind.
func TestBuildEnds(t *testing.T) {
	s := New(Options{Indexers: byNamespace(), Format: NewPacked(nil, nil)})
	replaceAll(t, s, 100, 1)
	e := &endingExtractor{fixedExtractor{[]string{"a", "b"}}, 50}
	if err := s.AddExtractor(e); err == nil || err.Error() != "enough" || e.objects != 0 {
		t.Errorf("AddExtractor() = %v with %d objects left, want the error after 50 objects", err, e.objects)
	}
	replaceAll(t, s, 100, 2)
	for _, name := range []string{"a", "b"} {
		if _, ok := s.Snapshot().Index(name); ok {
			t.Errorf("the index %s exists, want none", name)
		}
	}
	if err := s.AddExtractor(&fixedExtractor{[]string{"a", "b"}}); err != nil {
		t.Errorf("AddExtractor() after the end = %v, want no error", err)
	}
}
