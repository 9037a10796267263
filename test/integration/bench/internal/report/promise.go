package report

import (
	"cmp"
	"slices"

	"github.com/crdcache/crdcache/test/integration/bench/internal/experiment"
)

// Promise is a bound on the ratio Over / Under of two figures. It is judged at the greatest number of
// objects for which both were measured.
type Promise struct {
	// Title names the measured cost, Subject the subject that keeps the promise, and Peer the compared
	// subject.
	Title, Subject, Peer string
	// Over and Under identify the two figures, and leave Size and Objects empty.
	Over, Under Key
	// Floor is a figure that is subtracted from Over and Under, unless it is empty.
	Floor Key
	// Flat bounds the growth of the figure Over: its value at the greatest number of objects, divided by that
	// at the least number from flatFrom on.
	Flat bool
	// Size is the size of the objects. Default: small.
	Size string
	// Absolute bounds Over itself, in the unit of its metric.
	Absolute bool
	// AtMost makes Target an upper bound. It is a lower bound otherwise.
	AtMost bool
	Target float64
	// Margin is the bound for short runs on a busy machine. Zero means that short runs do not check the
	// promise.
	Margin float64
	// Headline shows the promise on the page even if it is kept.
	Headline bool
}

// Outcome is the comparison of a promise with a result.
type Outcome struct {
	Promise
	// Measured is false if a figure is missing.
	Measured bool
	// Objects is the number of objects at which the promise was judged.
	Objects int
	// Ratio is the measured ratio, or the figure itself for an absolute promise. Low and High are the least
	// and the greatest ratio of a single round. They are zero if there was only one round.
	Ratio, Low, High float64
	// Met reports whether the target was reached, and Broken whether the margin was missed.
	Met, Broken bool
}

// flatFrom is the number of objects at which flat promises begin: below, fixed costs dominate.
const flatFrom = 10_000

// Judge compares every promise with the result.
func Judge(r *Result) []Outcome {
	var outcomes []Outcome
	for _, p := range promises() {
		outcomes = append(outcomes, p.judge(r))
	}
	return outcomes
}

// BrokenPromises returns the outcomes that miss their margin. An unmeasured promise with a margin counts as
// broken too.
func BrokenPromises(outcomes []Outcome) []Outcome {
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
	o.Low, o.High = ratioRange(over.Values, under.Values)
	if p.AtMost {
		o.Met, o.Broken = o.Ratio <= p.Target, p.Margin != 0 && o.Ratio > p.Margin
	} else {
		o.Met, o.Broken = o.Ratio >= p.Target, p.Margin != 0 && o.Ratio < p.Margin
	}
	return o
}

// figures returns the compared figures, and whether both were measured.
func (p Promise) figures(r *Result) (over, under Figure, ok bool) {
	candidates := p.candidates(r)
	if len(candidates) == 0 {
		return over, under, false
	}
	last := candidates[len(candidates)-1]
	switch {
	case p.Absolute:
		if p.Floor.Experiment != "" {
			floor, ok := r.Get(p.Floor.atSizeOf(last))
			if !ok {
				return over, under, false
			}
			last = last.minus(floor)
		}
		return last, Figure{Values: slices.Repeat([]float64{1}, len(last.Values)), Median: 1}, true
	case p.Flat:
		from := slices.IndexFunc(candidates, func(f Figure) bool { return f.Objects >= flatFrom })
		if from < 0 || from == len(candidates)-1 {
			return over, under, false
		}
		return last, candidates[from], true
	}
	for _, f := range slices.Backward(candidates) {
		under, ok := r.Get(p.Under.atSizeOf(f))
		if !ok {
			continue
		}
		if p.Floor.Experiment == "" {
			return f, under, true
		}
		if floor, ok := r.Get(p.Floor.atSizeOf(f)); ok {
			return f.minus(floor), under.minus(floor), true
		}
	}
	return over, under, false
}

// candidates returns the figures that Over names, with ascending numbers of objects.
func (p Promise) candidates(r *Result) []Figure {
	at := Figure{Key: Key{Size: cmp.Or(p.Size, experiment.Small)}}
	var found []Figure
	for _, f := range r.Figures {
		at.Objects = f.Objects
		if f.Key == p.Over.atSizeOf(at) {
			found = append(found, f)
		}
	}
	slices.SortFunc(found, func(a, b Figure) int { return a.Objects - b.Objects })
	return found
}

// atSizeOf returns the key with the size and the number of objects of a figure.
func (k Key) atSizeOf(f Figure) Key {
	k.Size, k.Objects = f.Size, f.Objects
	return k
}
