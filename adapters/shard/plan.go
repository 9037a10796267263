package shard

import (
	"cmp"
	"slices"
)

// decide returns the shards to take and the shard to give up (-1 for none).
//
// All replicas decide by the same rule over about the same situation, but need not agree. If two replicas
// want a shard, the first write wins. A surplus shard is given up later.
func (p planState) decide() (take []int, give int) {
	give = -1
	if p.otherLayout {
		return nil, give
	}
	counts := map[string]int{}
	var free, ownShards []int
	expiringShards := 0 // shards of ended replicas, which will be free soon
	for shard, holder := range p.holders {
		switch {
		case holder == "":
			free = append(free, shard)
		case slices.Contains(p.members, holder):
			counts[holder]++
		default:
			expiringShards++
		}
		if holder == p.identity {
			ownShards = append(ownShards, shard)
		}
	}
	minShare := len(p.holders) / len(p.members)
	maxShare := (len(p.holders) + len(p.members) - 1) / len(p.members)
	missing := 0 // shards that all replicas need for the least share
	for _, m := range p.members {
		missing += max(0, minShare-counts[m])
	}
	capacity := max(0, minShare-len(ownShards))
	if capacity == 0 && len(ownShards) < maxShare && p.mayHaveOneMore(counts, minShare, len(free)-missing) {
		capacity = 1
	}
	p.sortByDistance(free)
	take = free[:min(capacity, len(free))]
	if len(free) == 0 && (len(ownShards) > maxShare || p.mustGiveUp(counts, minShare,
		missing-expiringShards)) {
		p.sortByDistance(ownShards)
		give = ownShards[len(ownShards)-1]
	}
	return take, give
}

// mayHaveOneMore reports whether the replica can take one more than the least share. spare is the number of
// such shards; the first replicas with the least share get them.
func (p planState) mayHaveOneMore(counts map[string]int, minShare, spare int) bool {
	for _, m := range p.members {
		if spare <= 0 {
			return false
		}
		if m == p.identity {
			return true
		}
		if counts[m] <= minShare {
			spare--
		}
	}
	return false
}

// mustGiveUp reports whether the replica has to give up a shard, because missing shards are needed elsewhere
// and it has one of the largest shares.
func (p planState) mustGiveUp(counts map[string]int, minShare, missing int) bool {
	givers := slices.DeleteFunc(slices.Clone(p.members), func(m string) bool { return counts[m] <= minShare })
	slices.SortStableFunc(givers, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	return slices.Index(givers, p.identity) >= 0 && slices.Index(givers, p.identity) < missing
}

// sortByDistance sorts shards by their distance from the replica's range if all replicas had adjacent ranges.
// The shards of a replica are therefore mostly adjacent, and two replicas seldom try the same shard first.
func (p planState) sortByDistance(shards []int) {
	rank := slices.Index(p.members, p.identity)
	from, to := rank*len(p.holders)/len(p.members), (rank+1)*len(p.holders)/len(p.members)
	distance := func(shard int) int { return max(0, from-shard, shard-to+1) }
	slices.SortStableFunc(shards, func(a, b int) int { return cmp.Compare(distance(a), distance(b)) })
}
