package query

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// labelConditions returns a condition for each index that can narrow a selector. Each one matches all objects
// that the selector selects, and possibly others.
func (c *compiler) labelConditions(selector labels.Selector) []*indexCondition {
	var out []*indexCondition
	requirements, _ := selector.Requirements() // there are none if the selector selects nothing
	for _, r := range requirements {
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
		default:
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(c.schema)) {
			if k := c.labelCondition(name, r); k != nil {
				out = append(out, k)
			}
		}
	}
	return out
}

// labelCondition returns the objects that an index has for a requirement, or nil if the index may not have
// all of them.
func (c *compiler) labelCondition(name string, r labels.Requirement) *indexCondition {
	k := &indexCondition{exact: []string{}, meter: c.meter}
	var values []value
	seenKeys := map[string]struct{}{}
	for _, v := range r.Values().List() {
		key, ok := c.schema[name].LabelKey(r.Key(), v)
		if !ok {
			return nil
		}
		if _, duplicate := seenKeys[key]; !duplicate {
			seenKeys[key] = struct{}{}
			k.exact = append(k.exact, key)
			values = append(values, value{parts: c.schema[name].Parts(key)})
		}
	}
	var err error
	if k.index, err = c.schema.open(c.snapshot, name); err != nil {
		return nil // declared, but not built yet
	}
	q := comparison{op: opIn, index: name, values: values}
	if len(values) == 1 {
		q.op = opEqual
	}
	k.query = q.String()
	k.estimate(c.snapshot.Len())
	return k
}
