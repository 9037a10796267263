package report

import "slices"

// between returns the least and the greatest ratio of two figures in one round: what was measured at about the same time
// had the same noise. Where they were not measured in the same rounds, any may meet any. It is zero for a single round,
// and where one of the rounds has nothing to divide by.
func between(over, under []float64) (low, high float64) {
	if max(len(over), len(under)) < 2 || len(over) == 0 || len(under) == 0 || slices.Min(under) <= 0 {
		return 0, 0
	}
	if len(over) != len(under) {
		return slices.Min(over) / slices.Max(under), slices.Max(over) / slices.Min(under)
	}
	ratios := make([]float64, len(over))
	for i := range over {
		ratios[i] = over[i] / under[i]
	}
	return slices.Min(ratios), slices.Max(ratios)
}

// beyond is the figure less another one, round by round: never less than nothing. Where they were not measured in the
// same rounds, the rounds are not known.
func (f Figure) beyond(less Figure) Figure {
	rounds := f.Values
	f.Median, f.Values = max(f.Median-less.Median, 0), nil
	if len(rounds) == len(less.Values) {
		for i, value := range rounds {
			f.Values = append(f.Values, max(value-less.Values[i], 0))
		}
	}
	return f
}
