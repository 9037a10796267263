package store

import (
	"cmp"
	"math/bits"
	"slices"
)

// bucketsFrom is from how many entries on buckets pay.
const bucketsFrom = 64

// sortHashed puts entries in the order of a trie: those that share a node are next to each other. Hashes are spread evenly, so
// that as many buckets as there are entries hold about one each.
func sortHashed[T any](entries []hashed[T]) {
	if len(entries) < bucketsFrom {
		sortFew(entries)
		return
	}
	shift := 64 - bits.Len(uint(len(entries)-1))
	ends := make([]int32, 1<<(64-shift))
	for i := range entries {
		ends[entries[i].hash>>shift]++
	}
	sum := int32(0)
	for b, count := range ends {
		ends[b] = sum
		sum += count
	}
	unsorted := slices.Clone(entries)
	for _, e := range unsorted {
		b := e.hash >> shift
		entries[ends[b]] = e
		ends[b]++
	}
	from := int32(0)
	for _, end := range ends {
		if end-from > 1 {
			sortFew(entries[from:end])
		}
		from = end
	}
}

// sortFew sorts what is short, unless all have the same hash.
func sortFew[T any](entries []hashed[T]) {
	if len(entries) > 12 {
		slices.SortFunc(entries, func(a, b hashed[T]) int { return cmp.Compare(a.hash, b.hash) })
		return
	}
	for i := 1; i < len(entries); i++ {
		for k := i; k > 0 && entries[k].hash < entries[k-1].hash; k-- {
			entries[k], entries[k-1] = entries[k-1], entries[k]
		}
	}
}
