package shard

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPlan verifies that from any distribution, replicas that observe the same Leases get fair shares. They
// need the least number of hand-overs, with at most one shard without a holder for each replica.
func TestPlan(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for range 300 {
		shards, members := 1+random.IntN(70), 1+random.IntN(9)
		names := make([]string, members)
		for i := range names {
			names[i] = fmt.Sprintf("replica-%d", i)
		}
		holders := make([]string, shards)
		for k := range holders {
			if owner := random.IntN(members + 1); owner < members {
				holders[k] = names[owner]
			}
		}
		start, least, most := count(holders), shards/members, (shards+members-1)/members
		needed := 0 // number of shards that have to move
		for _, m := range names {
			needed += max(0, start[m]-least)
		}
		moved, isStable := 0, false
		for round := 0; !isStable; round++ {
			if round > 10*shards {
				t.Fatalf("%d shards, %d members: the plans do not converge: %v", shards, members,
					count(holders))
			}
			before := slices.Clone(holders)
			for _, m := range names {
				take, give := planState{identity: m, members: names, holders: slices.Clone(before)}.decide()
				for _, k := range take {
					if holders[k] == "" { // if the shard has a holder, another replica was faster
						holders[k] = m
					}
				}
				if give >= 0 {
					holders[give], moved = "", moved+1
				}
			}
			isStable = slices.Equal(before, holders)
		}
		for _, m := range names {
			if n := count(holders)[m]; n < least || n > most {
				t.Errorf("%d shards, %d members: unfair shares %v from the start %v", shards, members,
					count(holders), start)
			}
		}
		if moved > needed {
			t.Errorf("%d shards, %d members: %d shards were released, want the necessary %d; start %v",
				shards, members,
				moved, needed, start)
		}
	}
}

func count(holders []string) map[string]int {
	counts := map[string]int{}
	for _, h := range holders {
		counts[h]++
	}
	delete(counts, "")
	return counts
}
