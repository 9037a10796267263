package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestKeySet compares a set with a map in a random history.
func TestKeySet(t *testing.T) {
	withHashMasks(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		s := New(Options{})
		set, model := NewKeySet(4), map[string]bool{}
		for step := range 3000 {
			key := fmt.Sprint("k", r.IntN(200))
			prepared := s.Prepare(KeyedItem{Key: key, Item: &thing{key: key}})
			switch r.IntN(3) {
			case 0:
				set.Delete(key)
				delete(model, key)
			case 1:
				if isNew := set.Add(prepared); isNew == model[key] {
					t.Fatalf("step %d: Add(%s) = %v, want the opposite", step, key, isNew)
				}
				model[key] = true
			default:
				s.Put(prepared)
				set.AddStored(s.Snapshot(), prepared)
				model[key] = true
			}
			for n := range 200 {
				if key := fmt.Sprint("k", n); set.Has(key) != model[key] {
					t.Fatalf("step %d: Has(%s) = %v, want %v", step, key, set.Has(key), model[key])
				}
			}
			if set.Len() != len(model) {
				t.Fatalf("step %d: Len() = %d, want %d", step, set.Len(), len(model))
			}
		}
	})
}
