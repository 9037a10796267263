package query

import (
	"context"
	"slices"
)

// ValueCount is a value of an index with the number of objects that have it.
type ValueCount struct {
	// Value is the value in the text syntax of queries.
	Value string `json:"value"`
	// Parts are the parts of the value in canonical form; one unless the index is composite. A part may be
	// indexers.Null.
	Parts []string `json:"parts"`
	Count int      `json:"count"`
}

// Values returns the values that the matching objects have in an index; [All] matches every object. They are
// in the order of the index, or of their text if it is not sorted. Limit, Continue and the sort order are
// ignored.
func (q *Querier) Values(ctx context.Context, index string, query Query,
	options Options) ([]ValueCount, error) {
	x, err := q.prepare(ctx, query, options.unordered())
	if err != nil {
		return nil, err
	}
	a, err := x.schema.open(x.snapshot, index)
	if err != nil {
		return nil, err
	}
	var found map[string]struct{} // nil means all objects
	if c, ok := x.cond.(constant); !ok || !bool(c) {
		found = map[string]struct{}{}
		x.candidates(func(key string, item any) bool {
			if allHold(x.expensive, key, item) {
				found[key] = struct{}{}
			}
			return true
		})
	}
	var out []ValueCount
	a.Keys("", "", false, func(key string, count int) bool {
		if found != nil {
			count = x.countAmong(a, key, found)
		}
		if count > 0 {
			out = append(out, a.value(key, count))
		}
		return x.spend(1)
	})
	if x.err != nil {
		return nil, x.err
	}
	if !a.sorted() {
		slices.SortFunc(out, func(a, b ValueCount) int { return slices.Compare(a.Parts, b.Parts) })
	}
	return out, nil
}

func (x *execution) countAmong(a openedIndex, key string, found map[string]struct{}) int {
	n := 0
	if len(found) < a.Count(key) {
		for object := range found {
			if x.countTested() && a.Has(key, object) {
				n++
			}
		}
		return n
	}
	a.Objects(key, func(object string, _ any) bool {
		if _, ok := found[object]; ok {
			n++
		}
		return x.countTested()
	})
	return n
}

func (a openedIndex) value(key string, count int) ValueCount {
	parts := []string{key}
	if a.declared != nil {
		parts = a.declared.Parts(key)
	}
	return ValueCount{Value: a.displayKey(key), Parts: parts, Count: count}
}
