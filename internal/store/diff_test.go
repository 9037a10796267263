package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
