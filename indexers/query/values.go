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
	exec, err := q.prepare(ctx, query, options.unordered())
	if err != nil {
		return nil, err
	}
	opened, err := exec.schema.open(exec.snapshot, index)
	if err != nil {
		return nil, err
	}
	var matched map[string]struct{} // nil means all objects
	if c, ok := exec.condition.(constantCondition); !ok || !bool(c) {
		matched = map[string]struct{}{}
		exec.candidates(func(key string, item any) bool {
			if allMatch(exec.expensive, key, item) {
				matched[key] = struct{}{}
			}
			return true
		})
	}
	var counts []ValueCount
	opened.Keys("", "", false, func(key string, count int) bool {
		if matched != nil {
			count = exec.countAmong(opened, key, matched)
		}
		if count > 0 {
			counts = append(counts, opened.value(key, count))
		}
		return exec.spend(1)
	})
	if exec.err != nil {
		return nil, exec.err
	}
	if !opened.isSorted() {
		slices.SortFunc(counts, func(opened, b ValueCount) int {
			return slices.Compare(opened.Parts, b.Parts)
		})
	}
	return counts, nil
}

func (e *execution) countAmong(index openedIndex, key string, matched map[string]struct{}) int {
	count := 0
	if len(matched) < index.Count(key) {
		for object := range matched {
			if e.countTested() && index.Has(key, object) {
				count++
			}
		}
		return count
	}
	index.Objects(key, func(object string, _ any) bool {
		if _, ok := matched[object]; ok {
			count++
		}
		return e.countTested()
	})
	return count
}

func (o openedIndex) value(key string, count int) ValueCount {
	parts := []string{key}
	if o.declared != nil {
		parts = o.declared.Parts(key)
	}
	return ValueCount{Value: o.displayKey(key), Parts: parts, Count: count}
}
