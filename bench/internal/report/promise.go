package report

import (
	"slices"

	"github.com/crdcache/crdcache/bench/internal/experiment"
)

// Promise is about the ratio of two figures, Over / Under, at the greatest number of objects for which both were
// measured.
type Promise struct {
	// Required is set for what the project was set out to reach; other promises were made since.
	Required bool
	// What is measured, of Who, in comparison with Against; both are names of subjects.
	What, Who, Against string
	// Over and Under are the figures; of their keys, Size and Objects are not set.
	Over, Under Key
	// Beyond is a figure that is taken off both; of its key, Size and Objects are not set. Without an experiment: none is.
	Beyond Key
	// Flat makes Under the same figure as Over with fewer objects: at least flatFrom of them.
	Flat bool
	// Large is set where it is about large objects, not small ones.
	Large bool
	// UpTo is the number of objects above which figures don't count; 0: all do.
	UpTo int
	// Absolute is set where there is no Under: Target is in the unit of Over.
	Absolute bool
	// AtMost is set where the ratio must not be greater than Target; otherwise it must not be less.
	AtMost bool
	// Target is what is promised.
	Target float64
	// Margin is how bad the ratio has to be in a short run to fail it: far beyond what a busy machine does.
	// Zero: it is not guarded.
	Margin float64
}

// Outcome is how a promise was kept.
type Outcome struct {
	Promise
	// Measured is false where a figure is missing.
	Measured bool
	// Objects is how many objects there were.
	Objects int
	// Ratio is the measured one, or, of what is absolute, the figure.
	Ratio float64
	// Low and High are the least and the greatest that rounds came to by themselves; zero where there was only one.
	Low, High float64
	// Met is set where the ratio reaches the target, Broken where it misses the margin.
	Met, Broken bool
}

// flatFrom is where growth is measured from: with fewer objects, what is done once counts too much.
const flatFrom = 10_000

// Judge returns the outcome of every promise.
func Judge(r *Result) []Outcome {
	var outcomes []Outcome
	for _, p := range allPromises() {
		outcomes = append(outcomes, p.judge(r))
	}
	return outcomes
}

// Broken returns the outcomes of guarded promises that are broken, or could not be judged.
func Broken(outcomes []Outcome) []Outcome {
	var broken []Outcome
	for _, o := range outcomes {
		if o.Margin != 0 && (o.Broken || !o.Measured) {
			broken = append(broken, o)
		}
	}
	return broken
}

func (p Promise) judge(r *Result) Outcome {
	o := Outcome{Promise: p}
	over, under, ok := p.figures(r)
	if !ok || under.Median == 0 {
		return o
	}
	o.Measured, o.Objects, o.Ratio = true, over.Objects, over.Median/under.Median
	o.Low, o.High = between(over.Values, under.Values)
	if p.AtMost {
		o.Met, o.Broken = o.Ratio <= p.Target, p.Margin != 0 && o.Ratio > p.Margin
	} else {
		o.Met, o.Broken = o.Ratio >= p.Target, p.Margin != 0 && o.Ratio < p.Margin
	}
	return o
}

// figures returns what the promise is about, and whether there is both.
func (p Promise) figures(r *Result) (over, under Figure, ok bool) {
	size := experiment.Small
	if p.Large {
		size = experiment.Large
	}
	candidates := r.Select(func(f Figure) bool {
		return f.Size == size && f.Experiment == p.Over.Experiment && (p.UpTo == 0 || f.Objects <= p.UpTo) &&
			f.Subject == p.Over.Subject && f.Metric == p.Over.Metric
	})
	slices.SortFunc(candidates, func(a, b Figure) int { return a.Objects - b.Objects })
	if p.Absolute {
		if len(candidates) == 0 {
			return over, under, false
		}
		over := candidates[len(candidates)-1]
		return over, Figure{Values: slices.Repeat([]float64{1}, len(over.Values)), Median: 1}, true
	}
	if p.Flat {
		from := slices.IndexFunc(candidates, func(f Figure) bool { return f.Objects >= flatFrom })
		if from < 0 || from == len(candidates)-1 {
			return over, under, false
		}
		return candidates[len(candidates)-1], candidates[from], true
	}
	for _, f := range slices.Backward(candidates) {
		key := p.Under
		key.Size, key.Objects = f.Size, f.Objects
		under, ok := r.Get(key)
		if !ok {
			continue
		}
		if p.Beyond.Experiment == "" {
			return f, under, true
		}
		off := p.Beyond
		off.Size, off.Objects = f.Size, f.Objects
		if less, ok := r.Get(off); ok {
			return f.beyond(less), under.beyond(less), true
		}
	}
	return over, under, false
}
