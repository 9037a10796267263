package query

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/internal/sortkey"
	"github.com/crdcache/crdcache/internal/naming"
)

// Aggregation describes a computation over the matching objects.
type Aggregation struct {
	// GroupBy lists names of indexes or paths such as .spec.class. If it is empty, all objects are one group.
	// An object with several values is in the group of each; an object without a value is in the group of
	// [indexers.Null].
	GroupBy []string
	// Measures are computed for each group, in addition to the number of its objects.
	Measures []Measure
}

// Measure is a function over the values of a group.
type Measure struct {
	// Function is sum, min, max or avg.
	Function string
	// Operand is the name of an index or a path.
	Operand string
	// As is the type of the values at a path, or in an index without a type: quantity, duration or number.
	// Default: the type of an index over the same path, or of the schema; see [Querier.WithDefinition].
	As string
}

// String returns the text from which [ParseMeasure] makes the measure.
func (m Measure) String() string {
	if m.As != "" {
		return m.Function + "(" + m.Operand + " as " + m.As + ")"
	}
	return m.Function + "(" + m.Operand + ")"
}

// ParseMeasure parses a measure such as "sum(weight)", "max(.spec.replicas)" or "sum(.spec.cpu as quantity)".
func ParseMeasure(text string) (Measure, error) {
	function, rest, ok := strings.Cut(strings.TrimSpace(text), "(")
	operand, closed := strings.CutSuffix(rest, ")")
	m := Measure{Function: strings.ToLower(strings.TrimSpace(function)), Operand: strings.TrimSpace(operand)}
	if i := strings.LastIndex(m.Operand, " as "); i >= 0 && measureTypes[m.Operand[i+4:]] {
		m.Operand, m.As = strings.TrimSpace(m.Operand[:i]), m.Operand[i+4:]
	}
	if !ok || !closed || m.Operand == "" || !slices.Contains(measureFunctions, m.Function) {
		return Measure{}, fmt.Errorf("%q is not a measure; write one of sum, min, max and avg with an index or a path, as in sum(.spec.replicas)", text)
	}
	return m, nil
}

var measureTypes = map[string]bool{"quantity": true, "duration": true, "number": true}

var measureFunctions = []string{"sum", "min", "max", "avg"}

// AggregateResult is the result of [Querier.Aggregate].
type AggregateResult struct {
	Freshness Freshness
	Plan      *Plan
	// Groups are sorted by their values, in the order of the index for indexes. Groups without a value come
	// last.
	Groups []Group
}

// Group is the set of objects with the same values. It counts an object once.
type Group struct {
	// Values are the values of Aggregation.GroupBy, in that order and in the text syntax. [indexers.Null]
	// marks a missing value.
	Values []string `json:"values"`
	// Count is the number of objects.
	Count int `json:"count"`
	// Results are the results of Aggregation.Measures, in that order.
	Results []MeasureResult `json:"results,omitempty"`
}

// MeasureResult is the result of a [Measure].
type MeasureResult struct {
	// Value is formatted by type: a number, a quantity as a number without unit, a duration, a time or text.
	// It is empty without values.
	Value string `json:"value"`
	// Values is the number of values used. Skipped is the number of values that the function does not
	// support, such as text in a sum.
	Values  int `json:"values"`
	Skipped int `json:"skipped,omitempty"`
}

// maxCombinations is the maximum number of groups of one object.
const maxCombinations = 10_000

// Aggregate groups the matching objects and computes measures for each group.
//
// Sums and averages are exact and accept numbers, quantities and durations. Min and max use the order of the
// index type. Values of paths and of indexes without a type are ordered naturally: numbers, then times, then
// other text. A group counts an object once but uses all its values, repeated ones included. A text such as
// 30m can be a quantity or a duration: if the type is unknown, Aggregate fails. It ignores Limit, Continue
// and the sort order.
func (q *Querier) Aggregate(ctx context.Context, query Query, aggregation Aggregation,
	options Options) (*AggregateResult, error) {
	exec, err := q.prepare(ctx, query, options.unordered())
	if err != nil {
		return nil, err
	}
	exec.warnSchema(Columns(Options{}, aggregation))
	groups := &grouping{execution: exec, groups: map[string]*group{}}
	for _, name := range aggregation.GroupBy {
		c, err := exec.column(name, "")
		if err != nil {
			return nil, err
		}
		groups.columns = append(groups.columns, c)
	}
	for _, m := range aggregation.Measures {
		c, err := exec.openMeasure(m)
		if err != nil {
			return nil, err
		}
		groups.measures = append(groups.measures, c)
	}
	if len(groups.columns) == 0 {
		groups.groupOf(nil) // one group even without objects
	}
	matched := 0
	exec.candidates(func(key string, item any) bool {
		if allMatch(exec.expensive, key, item) && !exec.isCancelled() {
			matched++
			err = groups.add(key, item)
		}
		return err == nil
	})
	if err = cmp.Or(err, exec.err); err != nil {
		return nil, err
	}
	exec.plan.Examined, exec.plan.Found = exec.examined, matched
	return &AggregateResult{Freshness: exec.snapshot.Freshness(), Plan: exec.plan,
		Groups: groups.results()}, nil
}

type grouping struct {
	*execution
	columns  []column
	measures []measureColumn
	groups   map[string]*group
}

type group struct {
	cells         []cell
	count         int
	measureTotals []measureTotal
}

func (g *grouping) add(key string, item any) error {
	combinations := [][]cell{nil}
	for _, c := range g.columns {
		cells := distinctCells(c.cells(key, item))
		if len(cells) == 0 {
			cells = []cell{{isMissing: true}}
		}
		if len(combinations)*len(cells) > maxCombinations {
			names := naming.Texts(g.columns, func(c column) string { return c.name })
			return fmt.Errorf("%s has too many values to be grouped by all of %s", key, strings.Join(names, ", "))
		}
		next := make([][]cell, 0, len(combinations)*len(cells))
		for _, combination := range combinations {
			for _, groupCell := range cells {
				next = append(next, append(combination[:len(combination):len(combination)], groupCell))
			}
		}
		combinations = next
	}
	values := naming.Map(g.measures, func(m measureColumn) []cell { return m.cells(key, item) })
	for _, combination := range combinations {
		target := g.groupOf(combination)
		target.count++
		for i, m := range g.measures {
			for _, v := range values[i] {
				if err := target.measureTotals[i].add(m, v); err != nil {
					return err
				}
			}
		}
		if !g.spend(1 + len(g.measures)) {
			return g.err
		}
	}
	return nil
}

// distinctCells removes cells with repeated values.
func distinctCells(cells []cell) []cell {
	if len(cells) < 2 {
		return cells
	}
	seenKeys := make(map[string]bool, len(cells))
	return slices.DeleteFunc(cells, func(c cell) bool {
		duplicate := seenKeys[c.text]
		seenKeys[c.text] = true
		return duplicate
	})
}

// groupOf returns or creates the group of a combination of values.
func (g *grouping) groupOf(cells []cell) *group {
	texts := naming.Texts(cells, cell.value)
	id := indexers.Value(append(texts, "")...)
	if g.groups[id] == nil {
		g.groups[id] = &group{cells: cells, measureTotals: make([]measureTotal, len(g.measures))}
	}
	return g.groups[id]
}

func (g *grouping) results() []Group {
	groups := slices.SortedFunc(maps.Values(g.groups), func(a, b *group) int {
		return slices.CompareFunc(a.cells, b.cells, cell.compare)
	})
	results := make([]Group, len(groups))
	for i, group := range groups {
		results[i] = Group{Values: naming.Texts(group.cells, cell.value), Count: group.count,
			Results: make([]MeasureResult, len(g.measures))}
		for n, m := range g.measures {
			results[i].Results[n] = group.measureTotals[n].measureResult(m)
		}
	}
	return results
}

type measureTotal struct {
	sum             *big.Rat
	extreme         cell // for min and max
	values, skipped int
}

// add adds a value. It fails if the value's type is ambiguous.
func (t *measureTotal) add(measure measureColumn, c cell) error {
	if measure.valueType == sortkey.Any && hasSeveralTypes(c.text) {
		return fmt.Errorf("cannot compute %s(%s): %s may be a quantity or a duration; write %[1]s(%[2]s as quantity) or %[1]s(%[2]s as duration), or name an index with a type",
			measure.function, measure.name, c.text)
	}
	if c.isMistyped {
		t.skipped++
		return nil
	}
	switch measure.function {
	case "min", "max":
		if sign := c.compare(t.extreme); t.values == 0 || measure.function == "min" && sign < 0 ||
			measure.function == "max" && sign > 0 {
			t.extreme = c
		}
	default:
		n, ok := measure.parseNumber(c.text)
		if !ok {
			t.skipped++
			return nil
		}
		if t.sum == nil {
			t.sum = new(big.Rat)
		}
		t.sum.Add(t.sum, n)
	}
	t.values++
	return nil
}

// hasSeveralTypes reports whether a text, such as 30m, can be a quantity or a duration.
func hasSeveralTypes(text string) bool {
	_, isNumber := sortkey.Number.Canonical(text)
	_, isQuantity := sortkey.Quantity.Canonical(text)
	_, isDuration := sortkey.ParseDuration(text)
	return isQuantity && isDuration && !isNumber
}

// parseNumber parses a value exactly; a duration as nanoseconds.
func (m measureColumn) parseNumber(text string) (*big.Rat, bool) {
	if m.valueType == sortkey.Duration {
		d, ok := sortkey.ParseDuration(text)
		return new(big.Rat).SetInt64(int64(d)), ok
	}
	canonical, ok := sortkey.Number.Canonical(text)
	if !ok && m.valueType != sortkey.Number {
		canonical, ok = sortkey.Quantity.Canonical(text)
	}
	if !ok {
		return nil, false
	}
	return new(big.Rat).SetString(canonical)
}

func (t *measureTotal) measureResult(measure measureColumn) MeasureResult {
	result := MeasureResult{Values: t.values, Skipped: t.skipped}
	switch {
	case t.values == 0:
	case measure.function == "min", measure.function == "max":
		result.Value = t.extreme.text
	default:
		n := t.sum
		if measure.function == "avg" {
			n = new(big.Rat).Quo(n, new(big.Rat).SetInt64(int64(t.values)))
		}
		result.Value = measure.format(n)
	}
	return result
}

// format formats a number as a value of the measure's type.
func (m measureColumn) format(n *big.Rat) string {
	if m.valueType == sortkey.Duration {
		quotient := new(big.Int).Quo(n.Num(), n.Denom())
		if quotient.IsInt64() {
			return time.Duration(quotient.Int64()).String()
		}
		seconds := new(big.Int).Quo(quotient, big.NewInt(int64(time.Second)))
		return seconds.String() + "s" // out of range of time.Duration
	}
	digits, isExact := n.FloatPrec()
	if !isExact {
		f, _ := n.Float64()
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	text := n.FloatString(digits)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
