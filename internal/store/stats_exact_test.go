package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/internal/packed"
)

// TestStatsAreAccurate compares Stats with the sizes of all parts, after a list and after many changes.
func TestStatsAreAccurate(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for name, format := range map[string]func() Format{
		"packed":     func() Format { return NewPacked(managedFieldsPruner(t), nil) },
		"compressed": func() Format { return NewPacked(managedFieldsPruner(t), s2.New(s2.Options{})) },
		"metadata":   func() Format { return NewMetadata(nil) },
		"object":     func() Format { return Objects(nil) },
	} {
		for _, objects := range []int{0, 1, 10, 400, 4_000} {
			t.Run(fmt.Sprint(name, " ", objects), func(t *testing.T) {
				s := New(Options{Format: format(),
					Indexers: withIndexes(cache.Indexers{"uid": byUID, "app": byApp})})
				if err := s.AddExtractor(sortedByUID{}); err != nil {
					t.Fatal(err)
				}
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
	stats := Stats{Objects: current.rows.len, TableBytes: trieBytes(&current.rows)}
	blocks, shared, valueBytes := map[*packed.Block]bool{}, map[*byte]bool{}, map[int]int64{}
	var decoded sizeWalk
	for r := range current.rows.all {
		stats.TableBytes += rowBytes(r)
		if o := r.object.Load(); o == nil {
			decoded.addObject(r.unpacked)
		} else {
			size := int64(o.Size())
			if b := o.Block(); b != nil {
				size = int64(b.Size())
				if blocks[b] {
					size = 0
				}
				blocks[b] = true
			}
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
	stats.ObjectBytes += decoded.bytes
	for i := range current.indexes {
		x := &current.indexes[i]
		index := IndexStats{Name: x.function.name, Values: x.postings.len,
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
