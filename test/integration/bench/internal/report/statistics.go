package report

import (
	"cmp"
	"slices"
)

// Quantile returns the value of the nearest rank for a share q from 0 to 1. It returns zero without values.
func Quantile[T cmp.Ordered](values []T, q float64) T {
	var zero T
	if len(values) == 0 {
		return zero
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(q*float64(len(sorted)) + 0.5)
	return sorted[min(max(rank-1, 0), len(sorted)-1)]
}

// median returns the middle value, or the mean of the two middle values. It returns zero without values.
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

// ratioRange returns the least and the greatest ratio of numerators to denominators. It divides round by
// round, because both values of a round share its noise. If the numbers of rounds differ, it divides every
// value of numerators by every value of denominators. It returns zeros for a single round, and if a divisor
// is zero.
func ratioRange(numerators, denominators []float64) (low, high float64) {
	if max(len(numerators), len(denominators)) < 2 || len(numerators) == 0 || len(denominators) == 0 ||
		slices.Min(denominators) <= 0 {
		return 0, 0
	}
	if len(numerators) != len(denominators) {
		return slices.Min(numerators) / slices.Max(denominators),
			slices.Max(numerators) / slices.Min(denominators)
	}
	ratios := make([]float64, len(numerators))
	for i := range numerators {
		ratios[i] = numerators[i] / denominators[i]
	}
	return slices.Min(ratios), slices.Max(ratios)
}

// minus subtracts other from the figure, round by round. Negative differences become zero. If the numbers of
// rounds differ, it subtracts only the medians.
func (f Figure) minus(other Figure) Figure {
	rounds := f.Values
	f.Median, f.Values = max(f.Median-other.Median, 0), nil
	if len(rounds) == len(other.Values) {
		for i, value := range rounds {
			f.Values = append(f.Values, max(value-other.Values[i], 0))
		}
	}
	return f
}
