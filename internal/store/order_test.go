package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"
)

// TestSortedValues verifies that an order agrees with a sorted slice, and earlier orders never change.
func TestSortedValues(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for _, spread := range []int{50, 3000} {
		var values sortedValues
		var model []string
		type moment struct {
			order sortedValues
			model []string
		}
		var before []moment
		for step := range 6000 {
			value := fmt.Sprint(random.IntN(spread))
			at, found := slices.BinarySearch(model, value)
			if found {
				values, model = values.without(value), slices.Delete(model, at, at+1)
			} else {
				values, model = values.with(value), slices.Insert(model, at, value)
			}
			if step%200 == 0 {
				checkSortedValues(t, random, &values, model)
				before = append(before, moment{values, slices.Clone(model)})
			}
		}
		for step := 0; len(model) > 0; step++ {
			at := random.IntN(len(model))
			values, model = values.without(model[at]), slices.Delete(model, at, at+1)
			if step%100 == 0 {
				checkSortedValues(t, random, &values, model)
			}
		}
		if len(values.chunks) != 0 || values.len != 0 {
			t.Errorf("the empty order has %d chunks and length %d, want 0", len(values.chunks), values.len)
		}
		for _, m := range before {
			checkSortedValues(t, random, &m.order, m.model)
			built := buildSortedValues(m.model)
			checkSortedValues(t, random, &built, m.model)
		}
	}
}

func checkSortedValues(t *testing.T, random *rand.Rand, values *sortedValues, model []string) {
	t.Helper()
	for range 4 {
		from, to := fmt.Sprint(random.IntN(4000)), fmt.Sprint(random.IntN(4000))
		switch random.IntN(4) {
		case 0:
			from = ""
		case 1:
			to = ""
		case 2:
			from, to = "", ""
		}
		limit := random.IntN(1000)
		var want []string
		for _, v := range model {
			if v >= from && (to == "" || v < to) {
				want = append(want, v)
			}
		}
		if got := values.count(from, to); got != len(want) {
			t.Fatalf("from %q to %q: counted %d, want %d", from, to, got, len(want))
		}
		gather := func(walk func(from, to string, yield func(string) bool)) (got []string) {
			walk(from, to, func(v string) bool {
				got = append(got, v)
				return len(got) < limit
			})
			return got
		}
		ascending, descending := gather(values.ascend), gather(values.descend)
		slices.Reverse(want)
		if diff := cmp.Diff(want[:min(len(want), max(limit, 1))], descending); len(want) > 0 && diff != "" {
			t.Fatalf("from %q to %q, descending: %s", from, to, diff)
		}
		slices.Reverse(want)
		if diff := cmp.Diff(want[:min(len(want), max(limit, 1))], ascending); len(want) > 0 && diff != "" {
			t.Fatalf("from %q to %q: %s", from, to, diff)
		}
		if len(want) == 0 && len(ascending)+len(descending) > 0 {
			t.Fatalf("from %q to %q: %v, %v", from, to, ascending, descending)
		}
	}
	if values.len != len(model) {
		t.Fatalf("the length is %d, want %d", values.len, len(model))
	}
}

// pair is an entry of the tries under test.
type pair struct {
	key   string
	value int
}

// hashMasks lead to hashes and tries of very different shapes.
var hashMasks = map[string]uint64{"good": ^uint64(0), "constant": 0, "low bits": 0x3ff,
	"top bits": ^uint64(1<<60 - 1)}

// withHashMasks runs test with different hashes.
func withHashMasks(t *testing.T, test func(t *testing.T)) {
	defer func() { hashMask = ^uint64(0) }()
	for name, mask := range hashMasks {
		hashMask = mask
		t.Run(name, test)
	}
}

// TestTrieIsAMap compares random histories with a map, and every earlier trie with its original content.
func TestTrieIsAMap(t *testing.T) {
	withHashMasks(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		model := map[string]int{}
		type version struct {
			trie trie[pair]
			held map[string]int
		}
		var versions []version
		var now trie[pair]
		for step := range 4000 {
			key := fmt.Sprint(random.IntN(300))
			if random.IntN(3) == 0 || step > 3500 {
				now = now.without(key)
				delete(model, key)
			} else {
				now = now.with(&pair{key, step})
				model[key] = step
			}
			found := now.find(key)
			if want, held := model[key]; (found != nil) != held || held && found.value != want {
				t.Fatalf("step %d: found %+v; want %v, %v", step, found, want, held)
			}
			if step%200 == 0 {
				versions = append(versions, version{now, maps.Clone(model)})
			}
		}
		versions = append(versions, version{now, model})
		for key := range model {
			now = now.without(key)
		}
		if now.len != 0 || now.inner != nil || now.leaf != nil {
			t.Errorf("after all entries have been removed, nodes are left: %+v", now)
		}
		for _, v := range versions {
			if diff := cmp.Diff(v.held, content(t, v.trie)); diff != "" {
				t.Fatal(diff)
			}
			for key, value := range v.held {
				found := v.trie.find(key)
				if found == nil || found.value != value {
					t.Errorf("%s: found %v; want %d", key, found, value)
				}
			}
		}
	})
}

func content(t *testing.T, tr trie[pair]) map[string]int {
	t.Helper()
	seen := map[string]int{}
	for p := range tr.all {
		if _, twice := seen[p.key]; twice {
			t.Errorf("%s is duplicated", p.key)
		}
		seen[p.key] = p.value
	}
	if len(seen) != tr.len {
		t.Errorf("the trie yields %d entries, but its len is %d", len(seen), tr.len)
	}
	return seen
}

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
