package requests

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
)

func lastHash(r sharding.Range) uint64 { return r.End - 1 }

func isEmpty(r sharding.Range) bool { return r.Start > lastHash(r) }

// Ranges are sorted, non-empty ranges of the hash space with gaps between them.
type Ranges []sharding.Range

// NewRanges returns the union of ranges. A range that ends at or before its start is empty.
func NewRanges(ranges ...sharding.Range) Ranges {
	sorted := slices.DeleteFunc(slices.Clone(ranges), isEmpty)
	slices.SortFunc(sorted, func(a, b sharding.Range) int { return cmp.Compare(a.Start, b.Start) })
	merged := Ranges{}
	for _, next := range sorted {
		if n := len(merged); n > 0 && (merged[n-1].End == 0 || next.Start <= merged[n-1].End) {
			if lastHash(next) > lastHash(merged[n-1]) {
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
		func(candidate sharding.Range, hash uint64) int { return cmp.Compare(candidate.Start, hash) })
	return found || at > 0 && r[at-1].Contains(hash)
}

// Minus returns the difference of r and other.
func (r Ranges) Minus(other Ranges) Ranges { return r.And(other.complement()) }

// And returns the intersection of r and other.
func (r Ranges) And(other Ranges) Ranges {
	var both []sharding.Range
	for _, a := range r {
		for _, b := range other {
			common := sharding.Range{Start: max(a.Start, b.Start), End: min(lastHash(a), lastHash(b)) + 1}
			if max(a.Start, b.Start) <= min(lastHash(a), lastHash(b)) {
				both = append(both, common)
			}
		}
	}
	return NewRanges(both...)
}

// Or returns the union of r and other.
func (r Ranges) Or(other Ranges) Ranges { return NewRanges(slices.Concat(r, other)...) }

// complement returns the hash space without r.
func (r Ranges) complement() Ranges {
	gaps := Ranges{}
	start, exhausted := uint64(0), false
	for _, piece := range r {
		if piece.Start > start {
			gaps = append(gaps, sharding.Range{Start: start, End: piece.Start})
		}
		start, exhausted = piece.End, piece.End == 0
	}
	if !exhausted {
		gaps = append(gaps, sharding.Range{Start: start})
	}
	return gaps
}

// maxSelectorTerms is the maximum number of ranges in a selector, which is part of a URL of limited length.
const maxSelectorTerms = 64

// requestRanges returns the ranges to request: r, with the smallest gaps filled if it has too many ranges.
func (r Ranges) requestRanges() Ranges {
	if len(r) <= maxSelectorTerms {
		return r
	}
	gaps := make([]int, len(r)-1) // gap i is before r[i+1]
	for i := range gaps {
		gaps[i] = i
	}
	slices.SortStableFunc(gaps,
		func(a, b int) int { return cmp.Compare(r[a+1].Start-r[a].End, r[b+1].Start-r[b].End) })
	filled := slices.Clone(r)
	for _, gap := range gaps[:len(r)-maxSelectorTerms] {
		filled = append(filled, sharding.Range{Start: r[gap].End, End: r[gap+1].Start})
	}
	return NewRanges(filled...)
}

// Selector returns a shard selector in the syntax of API servers.
func (r Ranges) Selector(key sharding.Key) string {
	terms := make([]string, len(r))
	for i, piece := range r {
		start, end, _ := strings.Cut(piece.String(), "-")
		terms[i] = fmt.Sprintf("shardRange(object.%s, '%s', '%s')", key, start, end)
	}
	return strings.Join(terms, " || ")
}
