package shard

import (
	"cmp"
	"slices"
)

// plan returns what a replica should take, and which shard it should give up, if any (-1: none).
//
// All replicas decide by the same rule over about the same situation. They need not agree: a shard that two
// want goes to the one whose write comes first, and a shard too many is given up later.
func (v situation) plan() (take []int, give int) {
	give = -1
	if v.foreign {
		return nil, give
	}
	counts := map[string]int{}
	var free, mine []int
	orphaned := 0 // shards of replicas that are gone, which will be free soon
	for shard, holder := range v.holders {
		switch {
		case holder == "":
			free = append(free, shard)
		case slices.Contains(v.members, holder):
			counts[holder]++
		default:
			orphaned++
		}
		if holder == v.self {
			mine = append(mine, shard)
		}
	}
	least := len(v.holders) / len(v.members)
	most := (len(v.holders) + len(v.members) - 1) / len(v.members)
	missing := 0 // what all replicas lack together
	for _, m := range v.members {
		missing += max(0, least-counts[m])
	}
	room := max(0, least-len(mine))
	if room == 0 && len(mine) < most && v.mayHaveOneMore(counts, least, len(free)-missing) {
		room = 1
	}
	v.sortByDistance(free)
	take = free[:min(room, len(free))]
	if len(free) == 0 && (len(mine) > most || v.mustGive(counts, least, missing-orphaned)) {
		v.sortByDistance(mine)
		give = mine[len(mine)-1]
	}
	return take, give
}

// mayHaveOneMore reports whether the replica is among the first that have the least, where so many shards are
// to spare.
func (v situation) mayHaveOneMore(counts map[string]int, least, spare int) bool {
	for _, m := range v.members {
		if spare <= 0 {
			return false
		}
		if m == v.self {
			return true
		}
		if counts[m] <= least {
			spare--
		}
	}
	return false
}

// mustGive reports whether the replica is among those that have the most, where so many shards are missing
// elsewhere.
func (v situation) mustGive(counts map[string]int, least, missing int) bool {
	givers := slices.DeleteFunc(slices.Clone(v.members), func(m string) bool { return counts[m] <= least })
	slices.SortStableFunc(givers, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	return slices.Index(givers, v.self) >= 0 && slices.Index(givers, v.self) < missing
}

// sortByDistance sorts shards by how far they are from where the replica's own would be if all replicas lay
// side by side, so that the shards of one are mostly neighbours, and two replicas seldom want the same one
// first.
func (v situation) sortByDistance(shards []int) {
	rank := slices.Index(v.members, v.self)
	from, to := rank*len(v.holders)/len(v.members), (rank+1)*len(v.holders)/len(v.members)
	distance := func(shard int) int { return max(0, from-shard, shard-to+1) }
	slices.SortStableFunc(shards, func(a, b int) int { return cmp.Compare(distance(a), distance(b)) })
}
