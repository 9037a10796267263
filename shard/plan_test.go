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

// TestPlanAlone verifies the plan of a single replica.
func TestPlanAlone(t *testing.T) {
	for name, tt := range map[string]struct {
		planState
		take []int
		give int
	}{
		"all are free": {planState{members: []string{"a"}, holders: []string{"", "", ""}},
			[]int{0, 1, 2}, -1},
		"the own half": {planState{members: []string{"0", "a"},
			holders: []string{"", "", "", ""}}, []int{2, 3}, -1},
		"one more than a fair share": {planState{members: []string{"a", "b"},
			holders: []string{"a", "a", "a", ""}}, nil, -1},
		"one by one": {planState{members: []string{"a", "b"},
			holders: []string{"a", "a", "a", "a"}}, nil, 3},
		"the odd one stays": {planState{members: []string{"a", "b"},
			holders: []string{"a", "b", "a"}}, nil, -1},
		"a new member needs a shard": {planState{members: []string{"a", "b", "c"},
			holders: []string{"a", "a", "b", "b"}}, nil, 1},
		"another replica releases": {planState{members: []string{"0", "a", "c"},
			holders: []string{"0", "0", "a", "a"}}, nil, -1},
		"an orphaned shard is enough": {planState{members: []string{"a", "b", "c"},
			holders: []string{"a", "a", "b", "dead"}}, nil, -1},
		"another layout": {planState{members: []string{"a"}, holders: []string{"", ""},
			otherLayout: true}, nil, -1},
		"more members than shards": {planState{members: []string{"0", "1", "a"},
			holders: []string{"0", "1"}}, nil, -1},
		"the last one to have any": {planState{members: []string{"0", "1", "a"},
			holders: []string{"0", ""}}, nil, -1},
		"the first one to have one": {planState{members: []string{"a", "b", "c"},
			holders: []string{"", "b"}}, []int{0}, -1},
		"the shard of a stopped replica": {planState{members: []string{"a", "b"},
			holders: []string{"a", "a", "a", "dead"}}, nil, 2},
		"a shard without a holder is next to an own one": {planState{members: []string{"0", "a"},
			holders: []string{"", "", "a", "0"}}, []int{1}, -1},
		"nothing while a shard has no holder": {planState{members: []string{"a", "b"},
			holders: []string{"a", "a", "a", "a", ""}}, nil, -1},
	} {
		t.Run(name, func(t *testing.T) {
			tt.identity = "a"
			take, give := tt.decide()
			if !slices.Equal(take, tt.take) || give != tt.give {
				t.Errorf("take %v, give %d; want %v, %d", take, give, tt.take, tt.give)
			}
		})
	}
}
