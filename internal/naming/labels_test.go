package naming

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// TestMatcherIsTheSelector compares matchers of random selectors with the selectors.
func TestMatcherIsTheSelector(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	value := func() string { return pick("", "a", "b", "1", "2", "-3", "10") }
	operators := []selection.Operator{
		selection.In, selection.Equals, selection.DoubleEquals, selection.NotIn, selection.NotEquals,
		selection.Exists, selection.DoesNotExist, selection.GreaterThan, selection.LessThan,
	}
	requirement := func() labels.Requirement {
		for {
			values := make([]string, random.IntN(4))
			for i := range values {
				values[i] = value()
			}
			operator := operators[random.IntN(len(operators))]
			if r, err := labels.NewRequirement(pick("x", "y", "z"), operator, values); err == nil {
				return *r
			}
		}
	}
	matched := 0
	for range 20_000 {
		selector := labels.NewSelector()
		for range random.IntN(5) {
			selector = selector.Add(requirement())
		}
		set := labels.Set{}
		for range random.IntN(4) {
			set[pick("x", "y", "z")] = value()
		}
		want := selector.Matches(set)
		if got := CompileLabels(selector).Matches(set); got != want {
			t.Fatalf("%q matches %v: %v, want %v", selector, set, got, want)
		}
		if want {
			matched++
		}
	}
	if matched < 1000 {
		t.Errorf("only %d selectors match, want at least 1000", matched)
	}
	if CompileLabels(labels.Nothing()).Matches(labels.Set{}) {
		t.Error("labels.Nothing() matches, want no match")
	}
}

// TestLookUps verifies that a selector looks up each label key once, for any number of values and
// requirements.
func TestLookUps(t *testing.T) {
	selector := labels.NewSelector()
	for i := range 1000 {
		r, err := labels.NewRequirement("a", selection.NotEquals, []string{fmt.Sprint(i)})
		if err != nil {
			t.Fatal(err)
		}
		selector = selector.Add(*r)
	}
	set := &countingSet{Set: labels.Set{"a": "x"}}
	if m := CompileLabels(selector); !m.Matches(set) || set.lookups != 1 || m.Len() != 1 {
		t.Errorf("%d lookups for %d label keys, want 1 for 1", set.lookups, m.Len())
	}
}

// countingSet is a label set that counts the lookups.
type countingSet struct {
	labels.Set
	lookups int
}

func (c *countingSet) Lookup(key string) (string, bool) {
	c.lookups++
	return c.Set.Lookup(key)
}
