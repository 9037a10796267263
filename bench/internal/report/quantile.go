package report

import (
	"cmp"
	"slices"
)

// Quantile returns the value below which a share q of the values lies, from 0 to 1: of the values themselves
// the one of the nearest rank, never something between two. It is zero without values.
func Quantile[T cmp.Ordered](values []T, q float64) T {
	var zero T
	if len(values) == 0 {
		return zero
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(q*float64(len(sorted)) + 0.5)
	return sorted[min(max(rank-1, 0), len(sorted)-1)]
}

// median returns the middle value, or the mean of the two middle ones. It is zero without values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// spread returns how far the values lie apart: the difference of the largest and the smallest as a share of
// the median. It is zero for fewer than two values.
func spread(values []float64) float64 {
	middle := median(values)
	if len(values) < 2 || middle == 0 {
		return 0
	}
	return (slices.Max(values) - slices.Min(values)) / middle
}
