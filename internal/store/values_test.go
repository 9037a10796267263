package store

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"k8s.io/client-go/tools/cache"
)

// valuesOf returns the values of an object in an index of the current snapshot.
func valuesOf(t *testing.T, s *Snapshot, index, key string) ([]string, bool) {
	t.Helper()
	view, ok := s.Index(index)
	if !ok {
		t.Fatalf("there is no index %s", index)
	}
	values, known := view.AppendValues(nil, key)
	slices.Sort(values)
	return values, known
}

func TestValuesOfAnObject(t *testing.T) {
	s := newStore(t, cache.Indexers{"tags": byTags, "parity": byParity})
	longValue := fmt.Sprintf("%0300d", 1)
	put := func(number int, tags ...string) {
		s.Put(s.Prepare((&thing{key: "k", number: number, tags: tags}).keyed()))
	}
	put(3, "x", "a", "x", longValue)
	first := s.Snapshot()
	for _, tc := range []struct {
		index, key string
		want       []string
		known      bool
	}{
		{"tags", "k", []string{longValue, "a", "x"}, true},
		{"parity", "k", []string{"1"}, true},
		{"tags", "nobody", nil, false},
	} {
		if got, known := valuesOf(t, first, tc.index, tc.key); known != tc.known ||
			!slices.Equal(got, tc.want) {
			t.Errorf("index %s of %s: %v, %v, want %v, %v", tc.index, tc.key, got, known, tc.want, tc.known)
		}
	}
	put(4)
	if got, known := valuesOf(t, s.Snapshot(), "tags", "k"); len(got) > 0 || !known {
		t.Errorf("values of an object without tags: %v, %v, want none, true", got, known)
	}
	if got, known := valuesOf(t, first, "tags", "k"); len(got) != 3 || !known {
		t.Errorf("the earlier snapshot has the values %v, %v, want 3, true", got, known)
	}
}

// TestValuesOfRemovedIndexes reads an earlier snapshot after its rows have lost the values of a removed
// index. The object must not appear to have no values.
func TestValuesOfRemovedIndexes(t *testing.T) {
	s := newStore(t, cache.Indexers{"tags": byTags, "parity": byParity})
	s.Put(s.Prepare((&thing{key: "k", number: 3, tags: []string{"x"}}).keyed()))
	before := s.Snapshot()
	s.RemoveIndexes("tags")
	if err := s.AddIndexers(cache.Indexers{"more": byParity}); err != nil { // which drops the removed values
		t.Fatal(err)
	}
	if got, known := valuesOf(t, before, "tags", "k"); known {
		t.Errorf("values in a removed index: %v, true, want false", got)
	}
	for _, index := range []string{"parity", "more"} {
		if got, known := valuesOf(t, s.Snapshot(), index, "k"); !known || !slices.Equal(got, []string{"1"}) {
			t.Errorf("index %s: %v, %v, want [1], true", index, got, known)
		}
	}
}

// TestValuesWhileIndexesChange reads values without a lock while rows change.
func TestValuesWhileIndexesChange(t *testing.T) {
	s := newStore(t, cache.Indexers{"parity": byParity})
	for n := range 200 {
		s.Put(s.Prepare((&thing{key: fmt.Sprint("k", n), number: n,
			tags: []string{fmt.Sprint("t", n)}}).keyed()))
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() { // ended by stop
			for {
				now := s.Snapshot()
				for _, name := range now.IndexNames() {
					for n := range 200 {
						want := map[bool]string{true: fmt.Sprint(n % 2),
							false: fmt.Sprint("t", n)}[name == "parity"]
						if got, known := valuesOf(t, now, name, fmt.Sprint("k", n)); known &&
							!slices.Equal(got, []string{want}) {
							t.Errorf("index %s of thing %d: %v, want %s", name, n, got, want)
							return
						}
					}
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for round := range 60 {
		name := fmt.Sprint("tags", round)
		if err := s.AddIndexers(cache.Indexers{name: byTags}); err != nil {
			t.Error(err)
		}
		if round%2 == 0 {
			s.RemoveIndexes(name)
		}
	}
	close(stop)
	readers.Wait()
}
