package query

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// labelStarts gives what the indexes over labels know of a selector: each holds all objects that the
// selector selects, and maybe others.
func (s schema) labelStarts(snapshot Snapshot, selector labels.Selector) []*keyed {
	var out []*keyed
	requirements, _ := selector.Requirements() // there are none where nothing is selected
	for _, r := range requirements {
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
		default:
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(s)) {
			if k := s.labelStart(snapshot, name, r); k != nil {
				out = append(out, k)
			}
		}
	}
	return out
}

// labelStart gives the objects that one index has for a requirement, or nil where they may not be all.
func (s schema) labelStart(snapshot Snapshot, name string, r labels.Requirement) *keyed {
	k := &keyed{exact: []string{}}
	var values []value
	for _, v := range r.Values().List() {
		key, ok := s[name].LabelKey(r.Key(), v)
		if !ok {
			return nil
		}
		if !slices.Contains(k.exact, key) {
			k.exact = append(k.exact, key)
			values = append(values, value{parts: s[name].Parts(key)})
		}
	}
	var err error
	if k.index, err = s.open(snapshot, name); err != nil {
		return nil // declared, but not there yet
	}
	c := comparison{op: opIn, index: name, values: values}
	if len(values) == 1 {
		c.op = opEqual
	}
	k.query = c.String()
	k.estimate(snapshot.Len())
	return k
}
