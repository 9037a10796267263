package query

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/indexers"
)

// Aggregation says what is computed of the objects that a query holds for.
type Aggregation struct {
	// GroupBy are what objects are grouped by: names of indexes, or paths such as .spec.class. Without any,
	// all objects are one group. An object with several values is in the groups of each; one without any is
	// in that of [indexers.Null].
	GroupBy []string
	// Measures are computed for each group, besides the number of its objects.
	Measures []Measure
}

// Measure is something that is computed of the values of a group.
type Measure struct {
	// Function is sum, min, max or avg.
	Function string
	// Of is the name of an index or a path, as in GroupBy.
	Of string
	// As is the type of the values at a path, or in an index without a type: quantity, duration or number. By
	// default it is the type of an index over the same path, or that of the schema; see
	// [Querier.WithDefinition].
	As string
}

// String writes the measure as [ParseMeasure] reads it.
func (m Measure) String() string {
	if m.As != "" {
		return m.Function + "(" + m.Of + " as " + m.As + ")"
	}
	return m.Function + "(" + m.Of + ")"
}

// ParseMeasure reads a measure such as "sum(weight)", "max(.spec.replicas)" or "sum(.spec.cpu as quantity)".
func ParseMeasure(text string) (Measure, error) {
	function, rest, ok := strings.Cut(strings.TrimSpace(text), "(")
	of, closed := strings.CutSuffix(rest, ")")
	m := Measure{Function: strings.ToLower(strings.TrimSpace(function)), Of: strings.TrimSpace(of)}
	if i := strings.LastIndex(m.Of, " as "); i >= 0 && measuredTypes[m.Of[i+4:]] {
		m.Of, m.As = strings.TrimSpace(m.Of[:i]), m.Of[i+4:]
	}
	if !ok || !closed || m.Of == "" || !slices.Contains(functionNames, m.Function) {
		return Measure{}, fmt.Errorf("%q is not a measure; write one of sum, min, max and avg with an index or a path, as in sum(.spec.replicas)", text)
	}
	return m, nil
}

// measuredTypes are the types that Measure.As can name.
var measuredTypes = map[string]bool{"quantity": true, "duration": true, "number": true}

var functionNames = []string{"sum", "min", "max", "avg"}

// Aggregated is what [Querier.Aggregate] gives.
type Aggregated struct {
	// Stamp says how recent this is, Plan how the objects were found.
	Stamp Stamp
	Plan  *Plan
	// Groups are in the order of their values; those of indexes in the order of the index, and no value comes
	// last.
	Groups []Group
}

// Group is the objects with the same values. An object is in a group once.
type Group struct {
	// Values are those of Aggregation.GroupBy, in that order, as they are written in a query; [indexers.Null]
	// stands for none.
	Values []string `json:"values"`
	// Count counts the objects.
	Count int `json:"count"`
	// Results are those of Aggregation.Measures, in that order.
	Results []Computed `json:"results,omitempty"`
}

// Computed is a result of a [Measure].
type Computed struct {
	// Value is the result in the form of the type: a number, and for quantities their number without a unit,
	// a duration, a time or text. It is empty when there are no values.
	Value string `json:"value"`
	// Values counts the values that it was computed of, and Skipped those that the function cannot take, such
	// as text for a sum.
	Values  int `json:"values"`
	Skipped int `json:"skipped,omitempty"`
}

// mostCombinations bounds the groups that one object is in.
const mostCombinations = 10_000

// Aggregate groups the objects that a query holds for and computes something of each group. Sums and averages
// are of numbers, quantities and durations, and exact; min and max are in the order of the type of an index,
// and of paths and indexes without a type numbers come before times and these before other text. An object
// counts once in a group. All its values are computed with, equal ones as often as it has them. A text such
// as 30m, which may be a quantity or a duration, is an error unless the type is known. Limit, Continue and
// the order do not matter.
func (q *Querier) Aggregate(ctx context.Context, query Query, a Aggregation,
	options Options) (*Aggregated, error) {
	x, err := q.prepare(ctx, query, Options{AllowScan: options.AllowScan, Now: options.Now,
		Yield: options.Yield})
	if err != nil {
		return nil, err
	}
	x.misfit(Columns(Options{}, a))
	g := &grouping{execution: x, groups: map[string]*group{}}
	for _, name := range a.GroupBy {
		c, err := x.column(name, "")
		if err != nil {
			return nil, err
		}
		g.by = append(g.by, c)
	}
	for _, m := range a.Measures {
		c, err := x.measured(m)
		if err != nil {
			return nil, err
		}
		g.measures = append(g.measures, c)
	}
	if len(g.by) == 0 {
		g.group(nil) // even of nothing
	}
	found := 0
	x.candidates(func(key string, item any) bool {
		if holdAll(x.dear, key, item) && !x.ended() {
			found++
			err = g.add(key, item)
		}
		return err == nil
	})
	if err == nil {
		err = x.err
	}
	if err != nil {
		return nil, err
	}
	x.plan.Examined, x.plan.Found = x.tested, found
	return &Aggregated{Stamp: x.snapshot.Stamp(), Plan: x.plan, Groups: g.sorted()}, nil
}

// grouping gathers groups.
type grouping struct {
	*execution
	by       []column
	measures []measuring
	groups   map[string]*group
}

// group is one group while it is gathered.
type group struct {
	at     []cell
	count  int
	totals []total
}

// add puts an object into its groups.
func (g *grouping) add(key string, item any) error {
	combinations := [][]cell{nil}
	for _, c := range g.by {
		cells := distinct(c.of(key, item))
		if len(cells) == 0 {
			cells = []cell{{none: true}}
		}
		if len(combinations)*len(cells) > mostCombinations {
			return fmt.Errorf("%s has too many values to be grouped by all of %s", key, g.names())
		}
		next := make([][]cell, 0, len(combinations)*len(cells))
		for _, before := range combinations {
			for _, one := range cells {
				next = append(next, append(before[:len(before):len(before)], one))
			}
		}
		combinations = next
	}
	values := make([][]cell, len(g.measures))
	for i, m := range g.measures {
		values[i] = m.of(key, item)
	}
	for _, at := range combinations {
		into := g.group(at)
		into.count++
		for i, m := range g.measures {
			for _, v := range values[i] {
				if err := into.totals[i].add(m, v); err != nil {
					return err
				}
			}
		}
		if !g.work(1 + len(g.measures)) {
			return g.err
		}
	}
	return nil
}

// distinct returns the cells without those whose value has come before.
func distinct(cells []cell) []cell {
	if len(cells) < 2 {
		return cells
	}
	seen := make(map[string]bool, len(cells))
	return slices.DeleteFunc(cells, func(c cell) bool {
		again := seen[c.text]
		seen[c.text] = true
		return again
	})
}

func (g *grouping) names() string {
	names := make([]string, len(g.by))
	for i, c := range g.by {
		names[i] = c.name
	}
	return strings.Join(names, ", ")
}

// group returns the group of some values.
func (g *grouping) group(at []cell) *group {
	texts := make([]string, len(at))
	for i, c := range at {
		texts[i] = c.value()
	}
	id := indexers.Value(append(texts, "")...)
	if g.groups[id] == nil {
		g.groups[id] = &group{at: at, totals: make([]total, len(g.measures))}
	}
	return g.groups[id]
}

// sorted gives the groups in order.
func (g *grouping) sorted() []Group {
	all := make([]*group, 0, len(g.groups))
	for _, one := range g.groups {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b *group) int { return slices.CompareFunc(a.at, b.at, cell.compare) })
	out := make([]Group, len(all))
	for i, one := range all {
		out[i] = Group{Values: make([]string, len(one.at)), Count: one.count,
			Results: make([]Computed, len(g.measures))}
		for n, c := range one.at {
			out[i].Values[n] = c.value()
		}
		for n, m := range g.measures {
			out[i].Results[n] = one.totals[n].result(m)
		}
	}
	return out
}
