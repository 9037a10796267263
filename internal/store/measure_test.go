package store

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/storage/zstd"
)

// TestMeasureAgreesWithStats compares Measure with Stats, after a list and after many changes.
func TestMeasureAgreesWithStats(t *testing.T) {
	for name, form := range map[string]func() Form{
		"packed":     func() Form { return NewPacked(withoutManagedFields(t), nil) },
		"compressed": func() Form { return NewPacked(withoutManagedFields(t), zstd.New(zstd.Options{})) },
		"metadata":   func() Form { return NewMetadata(nil) },
		"object":     func() Form { return Objects(nil) },
	} {
		for _, objects := range []int{0, 1, 10, 400, 4_000} {
			t.Run(fmt.Sprint(name, " ", objects), func(t *testing.T) {
				s := New(Options{Form: form(),
					Indexers: withIndexes(cache.Indexers{"uid": byUID, "app": byApp})})
				if err := s.AddExtractor(sortedByUID{}); err != nil {
					t.Fatal(err)
				}
				fill(t, s, objects, 1)
				compareMeasure(t, s)
				random := rand.New(rand.NewPCG(1, 2))
				for k := range objects {
					n := random.IntN(2 * objects)
					o := keyedCertificate(t, s.form, n, 10+k)
					if n%3 == 0 {
						s.Remove(o.Key, o.ResourceVersion)
					} else if _, ok := s.Put(s.Prepare(o)); !ok {
						t.Fatal("refused")
					}
				}
				compareMeasure(t, s)
			})
		}
	}
}

func compareMeasure(t *testing.T, s *Store) {
	t.Helper()
	got, want := s.Measure(), s.Stats()
	if got.Objects != want.Objects || got.Compressed != want.Compressed ||
		len(got.Indexes) != len(want.Indexes) {
		t.Errorf("measured %+v, really %+v", got, want)
	}
	var indexes int64
	for k, x := range want.Indexes {
		indexes += x.Bytes
		if m := got.Indexes[k]; m.Name != x.Name || m.Values != x.Values || m.Entries != x.Entries {
			t.Errorf("measured %+v, really %+v", m, x)
		}
	}
	// With few objects, their different sizes matter.
	near := func(what string, got, want, percent int64) {
		t.Helper()
		if difference := max(got-want, want-got); difference*100 > want*percent {
			t.Errorf("%s are %d bytes, measured are %d", what, want, got)
		}
	}
	if _, packs := s.form.(*Packed); packs {
		near("objects", got.ObjectBytes, want.ObjectBytes, 0)
	} else {
		near("objects", got.ObjectBytes, want.ObjectBytes, 10)
	}
	near("the table", got.TableBytes, want.TableBytes, 10)
	near("indexes", got.IndexBytes, indexes, 30)
}

// TestMeasureCostsTheSame checks that the allocations do not depend on the number of objects.
func TestMeasureCostsTheSame(t *testing.T) {
	allocations := func(objects int) float64 {
		s := New(Options{Form: NewPacked(nil, nil),
			Indexers: withIndexes(cache.Indexers{"uid": byUID, "app": byApp})})
		fill(t, s, objects, 1)
		return testing.AllocsPerRun(10, func() { s.Measure() })
	}
	if few, many := allocations(100), allocations(10_000); many > few {
		t.Errorf("%v allocations for 100 objects, %v for 10,000", few, many)
	}
}
