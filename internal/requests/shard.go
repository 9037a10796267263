package requests

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// ShardKey names what is hashed of an object to tell in which shard it is.
type ShardKey string

const (
	// ShardByUID spreads objects evenly, each by itself.
	ShardByUID ShardKey = "metadata.uid"
	// ShardByNamespace keeps what is in one namespace together, and what is in none, too.
	ShardByNamespace ShardKey = "metadata.namespace"
)

// ShardHash returns where a value is in the hash space: FNV-1a of 64 bits, as API servers compute it.
func ShardHash(value string) uint64 { return shardHash(value) }

// shardHash is hash/fnv without the writer that it takes for each value.
func shardHash[T string | []byte](value T) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	hash := uint64(offset)
	for i := range len(value) {
		hash = (hash ^ uint64(value[i])) * prime
	}
	return hash
}

// HashRange is a range of the hash space, from Start up to, but not including, End. An End of zero is that of
// the hash space, so that the zero value is all of it.
type HashRange struct{ Start, End uint64 }

// Contains reports whether a hash is in the range.
func (r HashRange) Contains(hash uint64) bool { return hash >= r.Start && hash <= r.last() }

// String is the range in hexadecimal digits: "0x0000000000000000-0x8000000000000000".
func (r HashRange) String() string { return r.bounds("", "-") }

// bounds writes the two ends as API servers read them.
func (r HashRange) bounds(quote, between string) string {
	end := fmt.Sprintf("0x%016x", r.End)
	if r.End == 0 {
		end = "0x10000000000000000"
	}
	return fmt.Sprintf("%s0x%016x%s%s%s%s%s", quote, r.Start, quote, between, quote, end, quote)
}

// last is the last hash of the range.
func (r HashRange) last() uint64 { return r.End - 1 }

// empty reports whether no hash is in the range.
func (r HashRange) empty() bool { return r.Start > r.last() }

// Ranges are ranges of the hash space: in order, not empty, with gaps between them.
type Ranges []HashRange

// NewRanges returns what is in any of some ranges. Those that end where they start, or before, are empty.
func NewRanges(ranges ...HashRange) Ranges {
	sorted := slices.DeleteFunc(slices.Clone(ranges), HashRange.empty)
	slices.SortFunc(sorted, func(a, b HashRange) int { return cmp.Compare(a.Start, b.Start) })
	merged := Ranges{}
	for _, next := range sorted {
		if n := len(merged); n > 0 && (merged[n-1].End == 0 || next.Start <= merged[n-1].End) {
			if next.last() > merged[n-1].last() {
				merged[n-1].End = next.End
			}
			continue
		}
		merged = append(merged, next)
	}
	return merged
}

// Contains reports whether a hash is in one of the ranges.
func (r Ranges) Contains(hash uint64) bool {
	at, found := slices.BinarySearchFunc(r, hash,
		func(one HashRange, hash uint64) int { return cmp.Compare(one.Start, hash) })
	return found || at > 0 && r[at-1].Contains(hash)
}

// Minus returns what is in r and not in other.
func (r Ranges) Minus(other Ranges) Ranges { return r.And(other.complement()) }

// And returns what is in both.
func (r Ranges) And(other Ranges) Ranges {
	var both []HashRange
	for _, a := range r {
		for _, b := range other {
			common := HashRange{Start: max(a.Start, b.Start), End: min(a.last(), b.last()) + 1}
			if max(a.Start, b.Start) <= min(a.last(), b.last()) {
				both = append(both, common)
			}
		}
	}
	return NewRanges(both...)
}

// Or returns what is in any of the two.
func (r Ranges) Or(other Ranges) Ranges { return NewRanges(slices.Concat(r, other)...) }

// complement is what is not in r.
func (r Ranges) complement() Ranges {
	gaps := Ranges{}
	start, over := uint64(0), false
	for _, one := range r {
		if one.Start > start {
			gaps = append(gaps, HashRange{Start: start, End: one.Start})
		}
		start, over = one.End, one.End == 0
	}
	if !over {
		gaps = append(gaps, HashRange{Start: start})
	}
	return gaps
}

// SplitHashSpace cuts the hash space into n ranges of the same size, as far as that is possible, in order;
// none for n below 1.
func SplitHashSpace(n int) []HashRange {
	var ranges []HashRange
	for i := range n {
		ranges = append(ranges, HashRange{Start: cut(i, n), End: cut(i+1, n)})
	}
	return ranges
}

// cut is where the first i of n ranges end: 2^64*i/n, which is zero where that is the end of the hash space.
func cut(i, n int) uint64 {
	if i == n {
		return 0
	}
	at, _ := bits.Div64(uint64(i), 0, uint64(n))
	return at
}

// selectable is how many ranges a selector has at most: it is part of a URL, and proxies bound these.
const selectable = 64

// selectedBy returns what is asked for where r is wanted: r, or, if these are too many ranges, with the
// smallest gaps between them.
func (r Ranges) selectedBy() Ranges {
	if len(r) <= selectable {
		return r
	}
	gaps := make([]int, len(r)-1) // gap i is before r[i+1]
	for i := range gaps {
		gaps[i] = i
	}
	slices.SortStableFunc(gaps,
		func(a, b int) int { return cmp.Compare(r[a+1].Start-r[a].End, r[b+1].Start-r[b].End) })
	filled := slices.Clone(r)
	for _, gap := range gaps[:len(r)-selectable] {
		filled = append(filled, HashRange{Start: r[gap].End, End: r[gap+1].Start})
	}
	return NewRanges(filled...)
}

// Selector writes the ranges as API servers read them.
func (r Ranges) Selector(key ShardKey) string {
	terms := make([]string, len(r))
	for i, one := range r {
		terms[i] = fmt.Sprintf("shardRange(object.%s, %s)", key, one.bounds("'", ", "))
	}
	return strings.Join(terms, " || ")
}
