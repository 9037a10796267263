package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
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
