package naming

import (
	"cmp"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"
)

// LabelMatcher matches the labels of the selector that it was compiled from. It is safe for concurrent use.
type LabelMatcher struct {
	matchesNothing bool
	// conditions are on different keys. Those that need a label come first, because most labels fail them.
	conditions []*condition
}

// condition joins the requirements of a selector on one key.
type condition struct {
	key string
	// mustExist requires the label, mustNotExist excludes it.
	mustExist, mustNotExist bool
	in                      sets.Set[string] // nil accepts any value
	notIn                   sets.Set[string]
	above, below            *int64
}

func CompileLabels(selector labels.Selector) *LabelMatcher {
	requirements, selectable := selector.Requirements()
	m := &LabelMatcher{matchesNothing: !selectable}
	byKey := map[string]*condition{}
	for _, r := range requirements {
		c := byKey[r.Key()]
		if c == nil {
			c = &condition{key: r.Key()}
			byKey[r.Key()] = c
			m.conditions = append(m.conditions, c)
		}
		if !c.add(r) {
			m.matchesNothing = true
		}
	}
	slices.SortStableFunc(m.conditions, func(a, b *condition) int { return cmp.Compare(a.rank(), b.rank()) })
	return m
}

func (c *condition) rank() int {
	if c.mustExist {
		return 0
	}
	return 1
}

// add returns false if the requirement matches no labels.
func (c *condition) add(r labels.Requirement) bool {
	switch values := r.ValuesUnsorted(); r.Operator() {
	case selection.In, selection.Equals, selection.DoubleEquals:
		c.mustExist = true
		if in := sets.New(values...); c.in == nil {
			c.in = in
		} else {
			c.in = c.in.Intersection(in)
		}
	case selection.NotIn, selection.NotEquals:
		c.notIn = c.notIn.Union(sets.New(values...))
	case selection.Exists:
		c.mustExist = true
	case selection.DoesNotExist:
		c.mustNotExist = true
	case selection.GreaterThan, selection.LessThan:
		return c.addBound(r.Operator(), values)
	default:
		return false
	}
	return true
}

// addBound adds a lower or upper bound.
func (c *condition) addBound(operator selection.Operator, values []string) bool {
	if len(values) != 1 {
		return false
	}
	bound, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil {
		return false
	}
	c.mustExist = true
	switch {
	case operator == selection.GreaterThan && (c.above == nil || *c.above < bound):
		c.above = &bound
	case operator == selection.LessThan && (c.below == nil || *c.below > bound):
		c.below = &bound
	}
	return true
}

// Len returns the number of labels that Matches looks up at most.
func (m *LabelMatcher) Len() int { return len(m.conditions) }

// Empty reports whether the selector selects everything.
func (m *LabelMatcher) Empty() bool { return !m.matchesNothing && len(m.conditions) == 0 }

// Matches reports whether the selector selects labels.
func (m *LabelMatcher) Matches(l labels.Labels) bool {
	if m.matchesNothing {
		return false
	}
	for _, c := range m.conditions {
		if value, found := l.Lookup(c.key); !c.matches(value, found) {
			return false
		}
	}
	return true
}

func (c *condition) matches(value string, found bool) bool {
	switch {
	case !found:
		return !c.mustExist
	case c.mustNotExist, c.in != nil && !c.in.Has(value), c.notIn.Has(value):
		return false
	case c.above == nil && c.below == nil:
		return true
	}
	number, err := strconv.ParseInt(value, 10, 64)
	return err == nil && (c.above == nil || number > *c.above) && (c.below == nil || number < *c.below)
}
