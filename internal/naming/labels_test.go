package naming

import (
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
